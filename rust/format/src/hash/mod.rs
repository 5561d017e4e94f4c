//! Hashes that decide where a key belongs, the same to the bit as Java's.
//!
//! Which of them a table uses is decided elsewhere.

mod bucket;
mod consistent;
mod java;
mod metadata;
mod murmur;
mod spark;

pub use bucket::{KeyParts, bucket_id, bucket_of, key_values};
pub use consistent::{ConsistentNode, consistent_hash, consistent_node, consistent_nodes};
pub use java::{list_hash, string_hash};
pub use metadata::{
    HASH_SEED, column_key, hash64, md5, metadata_file_group, text_hash64, text_md5,
};
pub(crate) use murmur::Inputs;
pub use murmur::murmur;
pub use spark::{SPARK_SEED, spark_int_hash, spark_long_hash, spark_text_hash};
