//! Lines in a diagram, as SVG: no script, no font of its own, and colours that follow the reader's, dark or light.

use std::fmt::Write as _;

/// A diagram.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Plot {
    pub(super) title: String,
    pub(super) x: Axis,
    pub(super) y: Axis,
    pub(super) lines: Vec<Line>,
}

/// From the first of its ticks to the last.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Axis {
    pub(super) label: &'static str,
    /// Where, and what is written there; in order.
    pub(super) ticks: Vec<(f64, String)>,
    /// Whether equal distances are equal ratios.
    pub(super) log: bool,
}

/// A line through points.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Line {
    pub(super) name: String,
    /// Which of the colours.
    pub(super) colour: usize,
    pub(super) dashed: bool,
    pub(super) points: Vec<(f64, f64)>,
}

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 420.0;
const LEFT: f64 = 78.0;
const RIGHT: f64 = 540.0;
const TOP: f64 = 48.0;
const BOTTOM: f64 = 360.0;

/// Colours that are told apart by those who see fewer of them, too; each is bright enough on black and dark enough on
/// white.
const COLOURS: usize = 5;
const STYLE: &str = "\
    .back{fill:#fff}.text{fill:#24292f;font:13px sans-serif}.title{font-size:15px;font-weight:600}\
    .grid{stroke:#d0d7de;stroke-width:1}.axis{stroke:#57606a;stroke-width:1.5;fill:none}\
    .line{fill:none;stroke-width:2.5;stroke-linejoin:round}.dashed{stroke-dasharray:7 5}\
    .c0{stroke:#0072b2}.c1{stroke:#d55e00}.c2{stroke:#8a8a00}.c3{stroke:#cc4499}.c4{stroke:#009e73}\
    @media (prefers-color-scheme:dark){.back{fill:#0d1117}.text{fill:#e6edf3}.grid{stroke:#30363d}\
    .axis{stroke:#8b949e}.c0{stroke:#56b4e9}.c1{stroke:#ff8c42}.c2{stroke:#f0e442}.c3{stroke:#ff8fc8}\
    .c4{stroke:#2fd6a4}}";

impl Plot {
    /// The file.
    pub(super) fn svg(&self) -> String {
        let title = escaped(&self.title);
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" \
             height=\"{HEIGHT}\" role=\"img\" aria-label=\"{title}\">\n<title>{title}</title>\n\
             <style>{STYLE}</style>\n<rect class=\"back\" width=\"{WIDTH}\" height=\"{HEIGHT}\"/>\n"
        );
        text(&mut svg, LEFT, 26.0, "start", "text title", &self.title);
        self.axes(&mut svg);
        for line in &self.lines {
            self.line(&mut svg, line);
        }
        for (at, line) in self.lines.iter().enumerate() {
            let y = TOP + 12.0 + 24.0 * at as f64;
            let (from, to) = (RIGHT + 20.0, RIGHT + 52.0);
            let _ = writeln!(svg, "<path class=\"{}\" d=\"M{from:.1} {y:.1}H{to:.1}\"/>", class(line));
            text(&mut svg, to + 8.0, y + 4.5, "start", "text", &line.name);
        }
        svg += "</svg>\n";
        svg
    }

    fn axes(&self, svg: &mut String) {
        for (value, label) in &self.y.ticks {
            let Some(y) = self.y.place(*value, BOTTOM, TOP) else { continue };
            let _ = writeln!(svg, "<path class=\"grid\" d=\"M{LEFT:.1} {y:.1}H{RIGHT:.1}\"/>");
            text(svg, LEFT - 8.0, y + 4.5, "end", "text", label);
        }
        for (value, label) in &self.x.ticks {
            let Some(x) = self.x.place(*value, LEFT, RIGHT) else { continue };
            let _ = writeln!(svg, "<path class=\"grid\" d=\"M{x:.1} {TOP:.1}V{BOTTOM:.1}\"/>");
            text(svg, x, BOTTOM + 20.0, "middle", "text", label);
        }
        let _ = writeln!(svg, "<path class=\"axis\" d=\"M{LEFT:.1} {TOP:.1}V{BOTTOM:.1}H{RIGHT:.1}\"/>");
        text(svg, f64::midpoint(LEFT, RIGHT), BOTTOM + 44.0, "middle", "text", self.x.label);
        let middle = f64::midpoint(TOP, BOTTOM);
        let _ = writeln!(
            svg,
            "<text class=\"text\" transform=\"translate(20 {middle:.1}) rotate(-90)\" \
             text-anchor=\"middle\">{}</text>",
            escaped(self.y.label)
        );
    }

    fn line(&self, svg: &mut String, line: &Line) {
        let mut path = String::new();
        for (x, y) in &line.points {
            let places = (self.x.place(*x, LEFT, RIGHT), self.y.place(*y, BOTTOM, TOP));
            if let (Some(x), Some(y)) = places {
                let _ = write!(path, "{}{x:.1} {y:.1}", if path.is_empty() { 'M' } else { 'L' });
            }
        }
        if !path.is_empty() {
            let _ = writeln!(svg, "<path class=\"{}\" d=\"{path}\"/>", class(line));
        }
    }
}

impl Axis {
    /// Powers of ten around these values, which are above 0.
    pub(super) fn decades(
        label: &'static str,
        values: impl Iterator<Item = f64>,
        shown: fn(f64) -> String,
    ) -> Self {
        let exponents = values.filter(|value| *value > 0.0 && value.is_finite()).map(f64::log10);
        let (least, most) = exponents.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), exponent| {
            (least.min(exponent.floor()), most.max(exponent.ceil()))
        });
        let (least, most) = if least.is_finite() { (least as i32, most as i32) } else { (0, 1) };
        let ticks = (least..=most.max(least + 1)).map(|exponent| {
            let value = 10_f64.powi(exponent);
            (value, shown(value))
        });
        Self { label, ticks: ticks.collect(), log: true }
    }

    /// From 0 to above these values, in steps of one figure.
    pub(super) fn from_zero(label: &'static str, values: impl Iterator<Item = f64>) -> Self {
        let most = values.filter(|value| value.is_finite()).fold(0.0, f64::max);
        let rough = if most > 0.0 { most / 5.0 } else { 0.2 };
        let power = 10_f64.powf(rough.log10().floor());
        let step =
            [1.0, 2.0, 5.0, 10.0].into_iter().find(|factor| factor * power >= rough).unwrap_or(10.0) * power;
        let steps = (most / step).ceil().max(1.0) as u32;
        let places = usize::try_from(-(step.log10().floor() as i32)).unwrap_or(0);
        let ticks = (0..=steps).map(|at| {
            let value = f64::from(at) * step;
            (value, format!("{value:.places$}"))
        });
        Self { label, ticks: ticks.collect(), log: false }
    }

    /// Where a value is between two places; none where it is outside of the axis, or cannot be on it.
    fn place(&self, value: f64, from: f64, to: f64) -> Option<f64> {
        let scaled = |value: f64| if self.log { value.ln() } else { value };
        let (first, last) = (scaled(self.ticks.first()?.0), scaled(self.ticks.last()?.0));
        let part = (scaled(value) - first) / (last - first);
        // A little outside is inside: floating-point numbers.
        (-1e-9..=1.0 + 1e-9).contains(&part).then_some(from + part * (to - from))
    }
}

fn class(line: &Line) -> String {
    format!("line c{}{}", line.colour % COLOURS, if line.dashed { " dashed" } else { "" })
}

fn text(svg: &mut String, x: f64, y: f64, anchor: &str, class: &str, text: &str) {
    let text = escaped(text);
    let _ = writeln!(
        svg,
        "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>"
    );
}

/// As it is written in XML, in text and in quotes.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            '\'' => escaped += "&#39;",
            character if character.is_control() => escaped.push(' '),
            character => escaped.push(character),
        }
    }
    escaped
}

#[cfg(test)]
mod tests;
