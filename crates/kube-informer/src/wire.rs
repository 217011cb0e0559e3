//! Frames of a watch and items of a list, split out of a streaming body without holding the body.
