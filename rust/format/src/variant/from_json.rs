//! JSON text as VARIANT values, of the same types and bytes as Spark's `parse_json` makes.

use std::borrow::Cow;
use std::collections::HashMap;

use super::parts::MAX_DEPTH;
use super::{VariantWriter, width_of};
use crate::{FormatError, Result};

/// Digits of the longest decimal.
const MAX_DIGITS: usize = 38;

/// The `metadata` and `value` of a JSON text.
///
/// Whole numbers become integers, others decimals where they have 38 digits at most and no exponent,
/// else doubles. Field names are numbered as they come.
///
/// # Errors
/// It is no JSON, has a field twice or a number beyond those of a double, or nests too deeply.
pub fn variant_from_json(text: &str) -> Result<(Vec<u8>, Vec<u8>)> {
    let mut parser = Parser {
        text,
        at: 0,
        names: Vec::new(),
        numbers: HashMap::new(),
        out: VariantWriter::default(),
    };
    parser.value(MAX_DEPTH)?;
    parser.blanks();
    if parser.at < text.len() {
        return parser.error("more text after the value");
    }
    let metadata = metadata(&parser.names)?;
    Ok((metadata, parser.out.bytes().to_vec()))
}

/// The dictionary of field names.
fn metadata(names: &[Cow<'_, str>]) -> Result<Vec<u8>> {
    let size: usize = names.iter().map(|name| name.len()).sum();
    let max = size.max(names.len());
    if u32::try_from(max).is_err() {
        let what = format!("VARIANT with {max} bytes of field names");
        return Err(FormatError::unsupported(what));
    }
    let width = width_of(max);
    let mut out = Vec::with_capacity(1 + (names.len() + 2) * width + size);
    out.push(1 | (width as u8 - 1) << 6);
    let mut put = |number: usize| {
        let bytes = (number as u64).to_le_bytes();
        out.extend_from_slice(bytes.get(..width).unwrap_or(&bytes));
    };
    put(names.len());
    let mut offset = 0;
    put(offset);
    for name in names {
        offset += name.len();
        put(offset);
    }
    for name in names {
        out.extend_from_slice(name.as_bytes());
    }
    Ok(out)
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    names: Vec<Cow<'a, str>>,
    numbers: HashMap<Cow<'a, str>, u32>,
    out: VariantWriter,
}

impl<'a> Parser<'a> {
    fn value(&mut self, depth: usize) -> Result<()> {
        if depth == 0 {
            let what = format!("JSON of more than {MAX_DEPTH} levels");
            return Err(FormatError::unsupported(what));
        }
        self.blanks();
        match self.peek() {
            Some(b'{') => self.object(depth)?,
            Some(b'[') => self.array(depth)?,
            Some(b'"') => {
                let text = self.string()?;
                self.out.string(&text)?;
            }
            Some(b'-' | b'0'..=b'9') => self.number()?,
            Some(b't') => {
                self.word("true")?;
                self.out.bool(true);
            }
            Some(b'f') => {
                self.word("false")?;
                self.out.bool(false);
            }
            Some(b'n') => {
                self.word("null")?;
                self.out.null();
            }
            _ => return self.error("a value is missing"),
        }
        Ok(())
    }

    fn object(&mut self, depth: usize) -> Result<()> {
        let (start, begin) = (self.out.len(), self.at);
        let mut fields: Vec<(u32, usize)> = Vec::new();
        self.at += 1;
        self.blanks();
        if !self.skip(b'}') {
            loop {
                self.blanks();
                if self.peek() != Some(b'"') {
                    return self.error("a field name is missing");
                }
                let name = self.string()?;
                let number = self.number_of(name);
                self.blanks();
                if !self.skip(b':') {
                    return self.error("a colon is missing");
                }
                fields.push((number, self.out.len()));
                self.value(depth - 1)?;
                self.blanks();
                if self.skip(b'}') {
                    break;
                }
                if !self.skip(b',') {
                    return self.error("a comma or the end of an object is missing");
                }
            }
        }
        let names = &self.names;
        let name = |number: u32| names.get(number as usize).map(AsRef::as_ref);
        let made = self.out.object_by(name, names.len(), start, &fields);
        made.map_err(|error| match error {
            FormatError::Corrupt { what, .. } => FormatError::corrupt(begin as u64, what),
            other => other,
        })
    }

    fn array(&mut self, depth: usize) -> Result<()> {
        let start = self.out.len();
        let mut starts = Vec::new();
        self.at += 1;
        self.blanks();
        if !self.skip(b']') {
            loop {
                starts.push(self.out.len());
                self.value(depth - 1)?;
                self.blanks();
                if self.skip(b']') {
                    break;
                }
                if !self.skip(b',') {
                    return self.error("a comma or the end of an array is missing");
                }
            }
        }
        self.out.array(start, &starts)
    }

    fn number_of(&mut self, name: Cow<'a, str>) -> u32 {
        if let Some(number) = self.numbers.get(&name) {
            return *number;
        }
        // Texts in Arrow have fewer than 2^32 bytes, and so names.
        let number = self.names.len() as u32;
        self.names.push(name.clone());
        self.numbers.insert(name, number);
        number
    }

    fn number(&mut self) -> Result<()> {
        let start = self.at;
        self.skip(b'-');
        let whole = self.digits();
        if whole == 0 || (whole > 1 && self.byte(self.at - whole) == Some(b'0')) {
            return self.error("a number is not well formed");
        }
        let mut fraction = 0;
        if self.skip(b'.') {
            fraction = self.digits();
            if fraction == 0 {
                return self.error("a number is not well formed");
            }
        }
        let is_plain = !matches!(self.peek(), Some(b'e' | b'E'));
        if !is_plain {
            self.at += 1;
            if !self.skip(b'-') {
                self.skip(b'+');
            }
            if self.digits() == 0 {
                return self.error("a number is not well formed");
            }
        }
        let text = self.text.get(start..self.at).unwrap_or_default();
        if is_plain
            && fraction == 0
            && let Ok(value) = text.parse()
        {
            self.out.int(value);
            return Ok(());
        }
        if is_plain
            && fraction <= MAX_DIGITS
            && let Some(unscaled) = unscaled(text)
        {
            self.out.decimal(unscaled, fraction as u8);
            return Ok(());
        }
        match text.parse::<f64>() {
            Ok(value) if value.is_finite() => {
                self.out.double(value);
                Ok(())
            }
            _ => {
                self.at = start;
                self.error("a number is beyond those of a double")
            }
        }
    }

    fn digits(&mut self) -> usize {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        self.at - start
    }

    fn string(&mut self) -> Result<Cow<'a, str>> {
        self.at += 1;
        let mut start = self.at;
        let mut escaped: Option<String> = None;
        loop {
            match self.peek() {
                Some(b'"') => {
                    let rest = self.text.get(start..self.at).unwrap_or_default();
                    self.at += 1;
                    return Ok(match escaped {
                        None => Cow::Borrowed(rest),
                        Some(text) => Cow::Owned(text + rest),
                    });
                }
                Some(b'\\') => {
                    let before = self.text.get(start..self.at).unwrap_or_default();
                    let text = escaped.get_or_insert_default();
                    text.push_str(before);
                    self.at += 1;
                    let letter = self.escape()?;
                    escaped.get_or_insert_default().push(letter);
                    start = self.at;
                }
                Some(0..0x20) => return self.error("a control character in a text"),
                Some(_) => self.at += 1,
                None => return self.error("a text has no end"),
            }
        }
    }

    fn escape(&mut self) -> Result<char> {
        let letter = match self.peek() {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                self.at += 1;
                return self.code_point();
            }
            _ => return self.error("an unknown escape in a text"),
        };
        self.at += 1;
        Ok(letter)
    }

    fn code_point(&mut self) -> Result<char> {
        let first = self.unit()?;
        let code = match first {
            0xd800..0xdc00 => {
                let is_pair = self.skip(b'\\') && self.skip(b'u');
                let second = if is_pair { self.unit()? } else { 0 };
                if !(0xdc00..0xe000).contains(&second) {
                    return self.error("half a surrogate pair in a text");
                }
                0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00)
            }
            other => other,
        };
        match char::from_u32(code) {
            Some(letter) => Ok(letter),
            None => self.error("half a surrogate pair in a text"),
        }
    }

    fn unit(&mut self) -> Result<u32> {
        let digits = self.text.get(self.at..self.at + 4);
        let is_hex = |text: &&str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let unit = digits
            .filter(is_hex)
            .and_then(|text| u32::from_str_radix(text, 16).ok());
        match unit {
            Some(unit) => {
                self.at += 4;
                Ok(unit)
            }
            None => self.error("an escape in a text lacks its four digits"),
        }
    }

    fn word(&mut self, word: &str) -> Result<()> {
        let rest = self.text.get(self.at..).unwrap_or_default();
        if !rest.starts_with(word) {
            return self.error("a value is missing");
        }
        self.at += word.len();
        Ok(())
    }

    fn blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn skip(&mut self, byte: u8) -> bool {
        let is_there = self.peek() == Some(byte);
        self.at += usize::from(is_there);
        is_there
    }

    fn peek(&self) -> Option<u8> {
        self.byte(self.at)
    }

    fn byte(&self, at: usize) -> Option<u8> {
        self.text.as_bytes().get(at).copied()
    }

    fn error<T>(&self, what: &str) -> Result<T> {
        Err(FormatError::corrupt(self.at as u64, what))
    }
}

/// The digits of a number without its point; none if there are too many for a decimal.
fn unscaled(text: &str) -> Option<i128> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text),
    };
    let digits = digits.bytes().filter(u8::is_ascii_digit);
    let digits = digits.skip_while(|digit| *digit == b'0');
    let (mut number, mut count) = (0_i128, 0);
    for digit in digits {
        count += 1;
        if count > MAX_DIGITS {
            return None;
        }
        number = number * 10 + i128::from(digit - b'0');
    }
    Some(sign * number)
}
