//! The way of one answer's body from the server to the client, through the
//! faults that act on it.
//!
//! Bytes are passed as they come; nothing is held but one watch frame while a
//! fault looks at frames. Each fault that cuts or stalls waits for its place,
//! an absolute position in the outgoing stream, set as soon as it is known.

use bytes::Bytes;
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

use super::answer::Answer;
use super::event::WatchEvent;
use super::fault::{Action, Point, Rule};
use super::frames::{Format, Splitter, Tracker};
use super::list::Scanner;
use super::script::Exchange;
use super::transcript::{End, Recorder};

/// The body of the server's answer.
type Upstream = UnsyncBoxBody<Bytes, String>;

/// Carries one body over.
pub(crate) struct Relay {
    upstream: Upstream,
    out: mpsc::Sender<Bytes>,
    recorder: Arc<Recorder>,
    exchange: Exchange,
    objects: Objects,
    frame_limit: usize,
    faults: Vec<Live>,
    /// Bytes handed over.
    sent: u64,
    /// Whole events handed over, as far as the stream can be looked into.
    events: u64,
}

/// What is known of where objects begin and end.
pub(crate) enum Objects {
    /// Nothing: compressed, or neither JSON nor protobuf.
    Opaque,
    /// A watch whose frames are only followed.
    Followed(Format, Tracker),
    /// A watch whose frames are taken apart.
    Split(Format, Splitter),
    /// A list.
    List(Scanner),
}

/// A fault in this exchange.
struct Live {
    rule: Arc<Rule>,
    from_events: u64,
    /// Where it cuts or stalls, once known.
    place: Option<u64>,
    /// It has acted: a cut or stall is over then, the rest goes on.
    acted: bool,
    /// An event held back to be sent later.
    held: Option<WatchEvent>,
}

impl Relay {
    pub(crate) fn new(
        upstream: Upstream,
        out: mpsc::Sender<Bytes>,
        recorder: Arc<Recorder>,
        exchange: Exchange,
        objects: Objects,
        frame_limit: usize,
    ) -> Self {
        let faults = Vec::new();
        Self { upstream, out, recorder, exchange, objects, frame_limit, faults, sent: 0, events: 0 }
    }

    /// Carries the body over to its end, or to the fault that ends it.
    pub(crate) async fn run(mut self, rules: Vec<Arc<Rule>>) -> Result<(), End> {
        for rule in rules {
            self.attach(rule);
        }
        loop {
            self.pause_here().await?;
            if let Some(answer) = self.error_due() {
                return self.fail(&answer).await;
            }
            tokio::select! {
                biased;
                Some(rule) = self.exchange.late.recv() => self.attach(rule),
                frame = self.upstream.frame() => match frame {
                    Some(Ok(frame)) => {
                        if let Ok(data) = frame.into_data() {
                            self.data(data).await?;
                        }
                    }
                    Some(Err(error)) => return Err(End::Upstream(error)),
                    None => return self.finish().await,
                },
            }
        }
    }

    fn attach(&mut self, rule: Arc<Rule>) {
        let mut live = Live { rule, from_events: self.events, place: None, acted: false, held: None };
        match &live.rule.action {
            Action::Cut(Point::Before) | Action::Stall(Point::Before) => live.place = Some(self.sent),
            Action::Cut(Point::Bytes(bytes)) | Action::Stall(Point::Bytes(bytes)) => {
                live.place = Some(self.sent + bytes);
            }
            Action::Throttle(_) => live.act(&self.recorder),
            _ => {}
        }
        let blind = match &self.objects {
            Objects::Opaque => live.rule.needs_objects(),
            // Items are counted from the list's beginning.
            Objects::List(_) => live.rule.needs_objects() && self.sent > 0,
            Objects::Followed(..) | Objects::Split(..) => false,
        };
        if blind {
            self.recorder.note(&format!("cannot {}: no objects to be seen here", live.rule.label()));
        }
        self.faults.push(live);
        self.place_between_events();
    }

    async fn data(&mut self, mut data: Bytes) -> Result<(), End> {
        self.split_if_needed();
        match &mut self.objects {
            Objects::List(scanner) if self.faults.iter().any(|fault| fault.inside().is_some()) => {
                let sent = self.sent;
                let faults = &mut self.faults;
                scanner.feed(&data, |item, at| {
                    for fault in &mut *faults {
                        if fault.inside() == Some(item) && fault.place.is_none() {
                            fault.place = Some(sent + at as u64);
                        }
                    }
                });
                self.deliver(data).await
            }
            Objects::Opaque | Objects::List(_) => self.deliver(data).await,
            Objects::Followed(_, tracker) => {
                if self.faults.iter().any(Live::looks_at_events) {
                    // In the middle of a frame: pass its rest, then look at the next.
                    let rest = data.split_to(tracker.feed_to_boundary(&data));
                    let ended = u64::from(tracker.at_boundary());
                    self.deliver(rest).await?;
                    self.count(ended);
                    if ended == 0 || data.is_empty() {
                        return Ok(());
                    }
                    return Box::pin(self.data(data)).await;
                }
                let ended = tracker.feed(&data);
                self.deliver(data).await?;
                self.count(ended);
                Ok(())
            }
            Objects::Split(format, splitter) => {
                let format = *format;
                splitter.push(&data);
                self.frames(format).await
            }
        }
    }

    async fn frames(&mut self, format: Format) -> Result<(), End> {
        loop {
            let Objects::Split(_, splitter) = &mut self.objects else { return Ok(()) };
            let frame = match splitter.next_frame() {
                Ok(Some(frame)) => frame,
                Ok(None) => return Ok(()),
                Err(too_large) => return Err(End::FrameTooLarge { limit: too_large.limit }),
            };
            match WatchEvent::parse(format, frame.clone()) {
                None => self.deliver(frame).await?,
                Some(event) => {
                    for event in self.changed(event) {
                        self.send(&event).await?;
                    }
                }
            }
        }
    }

    /// What goes out in an event's place.
    fn changed(&mut self, event: WatchEvent) -> Vec<WatchEvent> {
        let mut passing = vec![event];
        for fault in &mut self.faults {
            let rule = fault.rule.clone();
            let Action::Events(events, change) = &rule.action else { continue };
            let mut next = Vec::with_capacity(passing.len());
            for event in passing {
                if let Some(held) = fault.held.take() {
                    next.extend([event, held]);
                } else if rule.takes_event(events, &event) {
                    fault.act(&self.recorder);
                    let (now, later) = change.apply(event);
                    next.extend(now);
                    fault.held = later;
                    rule.acted_on_event();
                } else {
                    next.push(event);
                }
            }
            passing = next;
        }
        passing
    }

    async fn send(&mut self, event: &WatchEvent) -> Result<(), End> {
        let frame = event.encode();
        for fault in &mut self.faults {
            if fault.inside() == Some(self.events - fault.from_events) && fault.place.is_none() {
                fault.place = Some(self.sent + frame.len() as u64 / 2);
            }
        }
        self.deliver(frame).await?;
        self.count(1);
        self.pause_here().await
    }

    fn count(&mut self, events: u64) {
        self.events += events;
        self.recorder.events(events);
        self.place_between_events();
    }

    /// Gives faults that wait for a number of events their place, if it is here.
    fn place_between_events(&mut self) {
        if self.between_events() {
            for fault in &mut self.faults {
                if let Action::Cut(Point::Events(events)) | Action::Stall(Point::Events(events)) =
                    &fault.rule.action
                    && fault.place.is_none()
                    && self.events - fault.from_events >= *events
                {
                    fault.place = Some(self.sent);
                }
            }
        }
    }

    fn between_events(&self) -> bool {
        match &self.objects {
            Objects::Opaque | Objects::List(_) => false,
            Objects::Followed(_, tracker) => tracker.at_boundary(),
            Objects::Split(..) => true,
        }
    }

    fn split_if_needed(&mut self) {
        if let Objects::Followed(format, tracker) = &self.objects
            && tracker.at_boundary()
            && self.faults.iter().any(Live::looks_at_events)
        {
            self.objects = Objects::Split(*format, Splitter::new(*format, self.frame_limit));
        }
    }

    /// Hands bytes over, stopping at each place on the way.
    async fn deliver(&mut self, mut data: Bytes) -> Result<(), End> {
        while !data.is_empty() {
            self.pause_here().await?;
            let mut step = data.len() as u64;
            for fault in self.faults.iter().filter(|fault| !fault.acted) {
                if let Some(place) = fault.place.filter(|place| *place > self.sent) {
                    step = step.min(place - self.sent);
                }
            }
            let rate = self.rate();
            if let Some(rate) = rate {
                // Twenty steps a second.
                step = step.min((rate / 20).max(1));
            }
            let piece = data.split_to(step as usize);
            // The receiver is in the body that polls this: it is there.
            let _ = self.out.send(piece).await;
            self.sent += step;
            self.recorder.passed(step as usize);
            if let Some(rate) = rate {
                tokio::time::sleep(Duration::from_secs_f64(step as f64 / rate as f64)).await;
            }
        }
        Ok(())
    }

    fn rate(&self) -> Option<u64> {
        let rates = self.faults.iter().filter(|fault| !fault.rule.is_removed());
        rates
            .filter_map(
                |fault| if let Action::Throttle(rate) = fault.rule.action { Some(rate) } else { None },
            )
            .min()
    }

    /// Lets the faults act whose place is here.
    async fn pause_here(&mut self) -> Result<(), End> {
        while let Ok(rule) = self.exchange.late.try_recv() {
            self.attach(rule);
        }
        while let Some(fault) = self.faults.iter_mut().find(|fault| fault.is_due(self.sent)) {
            fault.act(&self.recorder);
            let rule = fault.rule.clone();
            if let Action::Cut(_) = rule.action {
                return Err(End::Cut);
            }
            loop {
                tokio::select! {
                    biased;
                    Some(late) = self.exchange.late.recv() => {
                        self.attach(late);
                        let now = self.sent;
                        let cut = |fault: &&mut Live| fault.is_due(now) && matches!(fault.rule.action, Action::Cut(_));
                        if let Some(cut) = self.faults.iter_mut().find(cut) {
                            cut.act(&self.recorder);
                            return Err(End::Cut);
                        }
                    }
                    () = rule.freed() => break,
                }
            }
        }
        Ok(())
    }

    /// The error that a fault wants said, once it can be.
    fn error_due(&mut self) -> Option<Answer> {
        if !self.between_events() {
            return None;
        }
        let recorder = self.recorder.clone();
        self.faults.iter_mut().find_map(|fault| {
            let rule = fault.rule.clone();
            let Action::ErrorEvent(answer) = &rule.action else { return None };
            (!rule.is_removed()).then(|| {
                fault.act(&recorder);
                answer.clone()
            })
        })
    }

    async fn fail(&mut self, answer: &Answer) -> Result<(), End> {
        if let Objects::Followed(format, _) | Objects::Split(format, _) = &self.objects {
            let event = answer.error_event(*format);
            self.send(&event).await?;
        }
        Ok(())
    }

    async fn finish(&mut self) -> Result<(), End> {
        let held: Vec<WatchEvent> = self.faults.iter_mut().filter_map(|fault| fault.held.take()).collect();
        for event in held {
            self.send(&event).await?;
        }
        if let Objects::Split(_, splitter) = &mut self.objects {
            let rest = splitter.take_rest();
            self.deliver(rest).await?;
        }
        self.pause_here().await
    }
}

impl Live {
    fn is_due(&self, sent: u64) -> bool {
        !self.acted && self.place == Some(sent) && !self.rule.is_removed()
    }

    /// The object that it stops inside of.
    fn inside(&self) -> Option<u64> {
        match &self.rule.action {
            Action::Cut(Point::Inside(whole)) | Action::Stall(Point::Inside(whole)) => Some(*whole),
            _ => None,
        }
    }

    fn looks_at_events(&self) -> bool {
        !self.rule.is_removed()
            && (matches!(self.rule.action, Action::ErrorEvent(_))
                || self.rule.needs_objects() && !self.is_over())
    }

    fn is_over(&self) -> bool {
        self.acted && !matches!(self.rule.action, Action::Events(..))
    }

    /// Says, the first time, that it has acted on this request.
    fn act(&mut self, recorder: &Recorder) {
        if !self.acted {
            self.acted = true;
            recorder.note(&self.rule.label());
            self.rule.act();
        }
    }
}
