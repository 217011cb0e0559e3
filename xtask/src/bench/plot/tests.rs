use super::*;

fn plot(name: &str) -> Plot {
    Plot {
        title: format!("What {name} costs"),
        x: Axis::decades("objects", [2_000.0, 200_000.0].into_iter(), |value| format!("{value}")),
        y: Axis::from_zero("µs <each>", [0.4, 1.7].into_iter()),
        lines: vec![
            Line {
                name: name.to_owned(),
                colour: 0,
                dashed: false,
                points: vec![(2_000.0, 0.4), (200_000.0, 1.7)],
            },
            Line { name: "nothing".to_owned(), colour: 6, dashed: true, points: Vec::new() },
        ],
    }
}

/// The names of all elements, in the order of their ends; none where tags or quotes do not fit.
fn elements(xml: &str) -> Option<Vec<String>> {
    let (mut open, mut ended, mut rest) = (Vec::new(), Vec::new(), xml);
    while let Some((before, after)) = rest.split_once('<') {
        references(before)?;
        let (tag, after) = after.split_once('>')?;
        rest = after;
        if let Some(name) = tag.strip_prefix('/') {
            (open.pop()? == name).then_some(())?;
            ended.push(name.to_owned());
            continue;
        }
        let (tag, closes) = tag.strip_suffix('/').map_or((tag, false), |tag| (tag, true));
        let (name, attributes) = tag.split_once(' ').unwrap_or((tag, ""));
        let quoted: Vec<&str> = attributes.split('"').collect();
        (quoted.len() % 2 == 1).then_some(())?;
        quoted
            .iter()
            .step_by(2)
            .all(|part| part.is_empty() || part.trim_start().ends_with('='))
            .then_some(())?;
        quoted.iter().skip(1).step_by(2).try_for_each(|value| references(value))?;
        if closes { ended.push(name.to_owned()) } else { open.push(name.to_owned()) }
    }
    (open.is_empty() && rest.trim().is_empty()).then_some(ended)
}

/// Whether every `&` begins a reference.
fn references(text: &str) -> Option<()> {
    text.split('&').skip(1).try_for_each(|part| part.split_once(';').map(drop))
}

#[test]
fn a_plot_is_well_formed_whatever_it_is_called() {
    for name in ["kube-informer", "a<b> & \"c\" 'd'", "]]>\u{0}<!--", "µ→∞"] {
        let svg = plot(name).svg();
        let found = elements(&svg).unwrap_or_else(|| panic!("not well-formed: {svg}"));
        assert_eq!(found.last().map(String::as_str), Some("svg"));
        assert!(svg.contains(&escaped(name)));
    }
    assert!(elements("<a><b></a></b>").is_none() && elements("<a x=\"1>").is_none());
    assert!(elements("<a>&</a>").is_none() && elements("<a>&amp;</a>").is_some());
}

#[test]
fn points_are_between_the_first_tick_and_the_last() {
    let plot = plot("x");
    assert_eq!(plot.x.ticks.iter().map(|tick| tick.0).collect::<Vec<_>>(), [1e3, 1e4, 1e5, 1e6]);
    assert_eq!(plot.x.place(1e3, 0.0, 300.0), Some(0.0));
    assert_eq!(plot.x.place(1e4, 0.0, 300.0).map(f64::round), Some(100.0));
    assert_eq!(plot.x.place(2e6, 0.0, 300.0), None);
    assert_eq!(plot.x.place(0.0, 0.0, 300.0), None);
    let svg = plot.svg();
    let path = svg.lines().find(|line| line.contains("line c0")).unwrap_or_default();
    assert!(path.contains("d=\"M124.") && path.contains('L'), "{path}");
    assert!(svg.contains("class=\"line c1 dashed\""));
}

#[test]
fn ticks_are_round_numbers_up_to_what_is_shown() {
    let labels = |values: &[f64]| -> Vec<String> {
        let axis = Axis::from_zero("", values.iter().copied());
        axis.ticks.into_iter().map(|(_, label)| label).collect()
    };
    assert_eq!(labels(&[0.4, 1.7]), ["0.0", "0.5", "1.0", "1.5", "2.0"]);
    assert_eq!(labels(&[97.0]), ["0", "20", "40", "60", "80", "100"]);
    assert_eq!(labels(&[]).len(), 2);
    let none = Axis::decades("", std::iter::empty(), |value| format!("{value}"));
    assert_eq!(none.ticks.len(), 2);
}

#[test]
fn nothing_but_lines_and_words_is_in_a_plot() {
    let svg = plot("x").svg();
    for other in ["script", "http:", "url(", "@import", "NaN", "inf"] {
        let svg = svg.replace("http://www.w3.org/2000/svg", "");
        assert!(!svg.contains(other), "{other}");
    }
}
