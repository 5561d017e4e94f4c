//! The parts of Arrow that the core uses, under the names that they have in the crate `arrow`.
//!
//! That crate also has kernels for strings, and with them regular expressions: nothing here needs
//! them, and each first build would compile them. A kernel that is missing is one more line here.

pub use arrow_array::ffi_stream;
pub use arrow_buffer::buffer;
pub use arrow_ipc as ipc;
pub use arrow_row as row;

/// Arrays, what builds them and what compares their values.
pub mod array {
    pub use arrow_array::builder::*;
    pub use arrow_array::cast::*;
    pub use arrow_array::*;
    pub use arrow_data::ArrayData;
    pub use arrow_data::transform::MutableArrayData;
    pub use arrow_ord::ord::{DynComparator, make_comparator};
}

/// Work on whole arrays.
pub mod compute {
    pub use arrow_arith::boolean::*;
    pub use arrow_cast::cast::*;
    pub use arrow_ord::sort::*;
    pub use arrow_select::{concat::*, filter::*, interleave::*, nullif::*, take::*};

    /// The kernels by module.
    pub mod kernels {
        pub use arrow_arith::{arity, numeric};
        pub use arrow_cast::parse as cast_utils;
        pub use arrow_ord::cmp;
        pub use arrow_select::zip;
    }
}

/// Schemas and types.
pub mod datatypes {
    pub use arrow_array::types::*;
    pub use arrow_array::{ArrowNativeTypeOp, ArrowPrimitiveType};
    pub use arrow_buffer::{ArrowNativeType, i256};
    pub use arrow_schema::{DataType, Field, FieldRef, Fields, Schema, SchemaRef, TimeUnit};
}

/// The error of all of them.
pub mod error {
    pub use arrow_schema::ArrowError;
}

/// Rows of several columns.
pub mod record_batch {
    pub use arrow_array::{RecordBatch, RecordBatchOptions};
}

/// Values as text.
pub mod util {
    pub use arrow_cast::display;
}
