//! What filters compare: values of one type only, as kubectl does it. Whole numbers and others are two types.

use std::cmp::Ordering;

use serde_json::Value;

use super::Item;
use super::tree::Operator;

const WRONG_TYPE: &str = "invalid type for comparison";
const TWO_TYPES: &str = "incompatible types for comparison";

enum Basic<'a> {
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(&'a str),
}

pub(super) fn passes(left: Item<'_>, operator: Operator, right: Item<'_>) -> Result<bool, &'static str> {
    let (left, right) = (basic(left)?, basic(right)?);
    let is_equality = matches!(operator, Operator::Equal | Operator::NotEqual);
    let order = match (left, right) {
        (Basic::Bool(left), Basic::Bool(right)) if is_equality => Some(left.cmp(&right)),
        (Basic::Bool(_), Basic::Bool(_)) => return Err(WRONG_TYPE),
        (Basic::Int(left), Basic::Int(right)) => Some(left.cmp(&right)),
        (Basic::Float(left), Basic::Float(right)) => left.partial_cmp(&right),
        (Basic::Text(left), Basic::Text(right)) => Some(left.cmp(right)),
        _ => return Err(TWO_TYPES),
    };
    Ok(match operator {
        Operator::Equal => order == Some(Ordering::Equal),
        Operator::NotEqual => order != Some(Ordering::Equal),
        Operator::Less => order == Some(Ordering::Less),
        Operator::LessOrEqual => matches!(order, Some(Ordering::Less | Ordering::Equal)),
        Operator::Greater => order == Some(Ordering::Greater),
        Operator::GreaterOrEqual => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
    })
}

fn basic(item: Item<'_>) -> Result<Basic<'_>, &'static str> {
    Ok(match item {
        Item::Json(Value::Bool(value)) => Basic::Bool(*value),
        Item::Bool(value) => Basic::Bool(value),
        Item::Json(Value::String(text)) => Basic::Text(text),
        Item::Text(text) => Basic::Text(text),
        Item::Json(Value::Number(number)) => match (number.as_i64(), number.as_f64()) {
            (Some(int), _) => Basic::Int(int),
            (None, Some(float)) => Basic::Float(float),
            (None, None) => return Err(WRONG_TYPE),
        },
        Item::Int(number) => Basic::Int(number),
        Item::Byte(byte) => Basic::Int(i64::from(byte)),
        Item::Float(number) => Basic::Float(number),
        Item::Nothing | Item::Json(Value::Null | Value::Array(_) | Value::Object(_)) => {
            return Err(WRONG_TYPE);
        }
    })
}
