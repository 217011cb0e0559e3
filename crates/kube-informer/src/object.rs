//! One version of one object: its bytes, its metadata, its views.
