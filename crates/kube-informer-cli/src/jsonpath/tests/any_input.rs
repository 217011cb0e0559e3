use proptest::prelude::*;

use super::super::*;
use super::object;

/// What templates are made of, so that most of them are read to their end.
fn fragments() -> impl Strategy<Value = String> {
    let words = prop::sample::select(vec![
        "{",
        "}",
        "[",
        "]",
        "(",
        ")",
        "[?(",
        ")]",
        ".",
        "..",
        "*",
        ",",
        ":",
        "@",
        "$",
        "'",
        "\"",
        "\\",
        "==",
        "!=",
        "<",
        ">",
        "=",
        "range ",
        "end",
        "true",
        "-1",
        "0",
        "2",
        "1.5",
        "99999999999999999999",
        "spec",
        "words",
        "containers",
        "name",
        "{range .spec.containers[*]}",
        "{end}",
        "{.spec.words[*]}",
        " ",
        "\n",
        "\t",
        "é",
        "{.",
        "['",
        "']",
    ]);
    prop::collection::vec(words, 0..24).prop_map(|words| words.concat())
}

fn look(template: &str) {
    if let Err(error) = Template::parse(template).and_then(|read| read.render(&object())) {
        assert!(!error.explain(template).is_empty());
    }
    if let Ok(path) = relaxed(template) {
        let _ = Template::parse(&path).and_then(|read| read.render(&object()));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 4000, ..ProptestConfig::default() })]

    #[test]
    fn no_template_of_known_words_panics(template in fragments()) {
        look(&template);
    }

    #[test]
    fn no_text_panics(template in any::<String>()) {
        look(&template);
        look(&format!("{{.spec{template}}}"));
        look(&format!("{{.spec.containers[?({template})]}}"));
    }
}
