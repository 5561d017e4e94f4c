//! A new file, written as a stream: small ones are one put, larger ones go up in parts.

use std::fmt;
use std::mem;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use object_store::{MultipartUpload, ObjectStoreExt, PutPayload, UploadPart};

use super::{Remote, put};
use crate::{Result, StoreError};

/// Bytes of a part. S3 takes 10,000 parts of an object, each but the last of 5 MiB at least.
const PART: usize = 8 << 20;

/// A new file. It appears when it is finished.
///
/// One that needs more than a part is an empty object from its second part on, which keeps the name:
/// a server completes an upload in parts also when there is an object of the name.
pub(crate) struct Upload {
    remote: Arc<Remote>,
    path: String,
    buffer: BytesMut,
    parts: Option<Parts>,
    written: u64,
    finished: bool,
}

struct Parts {
    upload: Box<dyn MultipartUpload>,
    /// A part on its way, while the next one is being written.
    sending: Option<tokio::task::JoinHandle<object_store::Result<()>>>,
}

impl Upload {
    /// Begins the file. No request is made.
    pub(crate) fn create(remote: &Arc<Remote>, path: &str) -> Result<Self> {
        remote.file_key(path)?;
        Ok(Self {
            remote: Arc::clone(remote),
            path: path.to_owned(),
            buffer: BytesMut::new(),
            parts: None,
            written: 0,
            finished: false,
        })
    }

    pub(crate) fn write(&mut self, mut bytes: &[u8]) -> Result<usize> {
        let all = bytes.len();
        while !bytes.is_empty() {
            if self.buffer.len() == PART {
                self.send()?;
            }
            let (now, later) = bytes.split_at(bytes.len().min(PART - self.buffer.len()));
            self.buffer.extend_from_slice(now);
            bytes = later;
        }
        self.written += all as u64;
        Ok(all)
    }

    /// Makes the file appear, and returns its length.
    pub(crate) fn finish(mut self) -> Result<u64> {
        if self.parts.is_none() {
            let bytes = mem::take(&mut self.buffer).freeze();
            if !put::if_absent_to_be_read(&self.remote, &self.path, &bytes)? {
                return Err(self.exists());
            }
        } else {
            self.send()?;
            self.complete()?;
        }
        self.finished = true;
        Ok(self.written)
    }

    /// Sends the buffer as a part, after the one before it has arrived.
    fn send(&mut self) -> Result<()> {
        self.begin()?;
        let part: Bytes = mem::take(&mut self.buffer).freeze();
        let Some(parts) = &mut self.parts else {
            return Ok(());
        };
        let before = parts.sending.take();
        let next: UploadPart = parts.upload.put_part(PutPayload::from(part));
        let sending = self.remote.run(&self.path, async |_| {
            arrived(before).await?;
            Ok(tokio::spawn(next))
        })?;
        parts.sending = Some(sending);
        Ok(())
    }

    fn begin(&mut self) -> Result<()> {
        if self.parts.is_some() {
            return Ok(());
        }
        if !put::if_absent(&self.remote, &self.path, Bytes::new())? {
            return Err(self.exists());
        }
        let key = self.remote.file_key(&self.path)?;
        let begun = self
            .remote
            .run(&self.path, async |client| client.put_multipart(&key).await);
        match begun {
            Ok(upload) => {
                let sending = None;
                self.parts = Some(Parts { upload, sending });
                Ok(())
            }
            Err(error) => {
                // Best effort: the marker of the write names the file, too.
                let _ = put::delete(&self.remote, &self.path);
                Err(error)
            }
        }
    }

    fn complete(&mut self) -> Result<()> {
        let Some(parts) = &mut self.parts else {
            return Ok(());
        };
        let before = parts.sending.take();
        let upload = &mut parts.upload;
        self.remote.run(&self.path, async |_| {
            arrived(before).await?;
            upload.complete().await
        })?;
        Ok(())
    }

    fn exists(&self) -> StoreError {
        StoreError::AlreadyExists {
            path: self.remote.url(&self.path),
        }
    }
}

async fn arrived(
    part: Option<tokio::task::JoinHandle<object_store::Result<()>>>,
) -> object_store::Result<()> {
    match part {
        Some(part) => part.await?,
        None => Ok(()),
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        let Some(mut parts) = self.parts.take() else {
            return;
        };
        if !self.remote.is_own() {
            // In a forked child: the upload is the parent's.
            mem::forget(parts);
            return;
        }
        if self.finished {
            return;
        }
        let before = parts.sending.take();
        let _ = self.remote.run(&self.path, async |_| {
            let _ = arrived(before).await;
            parts.upload.abort().await
        });
        // Best effort: the marker of the write names the file, too.
        let _ = put::delete(&self.remote, &self.path);
    }
}

impl fmt::Debug for Upload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = self.remote.url(&self.path);
        f.debug_tuple("Upload").field(&url).finish()
    }
}
