use super::*;

/// What each subscription of a client knows, by its name.
#[derive(Debug, Default)]
struct Views {
    values: BTreeMap<String, BTreeMap<String, String>>,
    is_closed: bool,
}

impl Views {
    fn read(&mut self, session: &mut Session, most: usize) {
        for _ in 0..most {
            let Some(outgoing) = session.pop() else { return };
            self.take(serde_json::from_slice(&outgoing.text()).unwrap());
        }
    }

    fn take(&mut self, message: Message) {
        let value =
            |object: &Option<Value>| object.as_ref().unwrap()["data"]["key"].as_str().unwrap().to_owned();
        match message {
            Message::SnapBegin(begin) => _ = self.values.insert(begin.sub, BTreeMap::new()),
            Message::SnapItem(item) => {
                let known = self.values.get_mut(&item.sub).unwrap();
                assert_eq!(known.insert(item.obj.uid, value(&item.object)), None);
            }
            Message::Change(message) => {
                for sub in &message.subs {
                    let values = self.values.get_mut(sub).unwrap();
                    let uid = message.change.obj.uid.clone();
                    let known = match message.change.what {
                        What::Deleted => values.remove(&uid),
                        What::Added | What::Modified => values.insert(uid, value(&message.object)),
                    };
                    assert_eq!(known.is_some(), message.change.what != What::Added, "{sub}: {message:?}");
                }
            }
            Message::SnapEnd(_) => {}
            // What becomes of those who come back is told elsewhere.
            Message::Gap(_) | Message::Bye(_) => self.is_closed = true,
            other => panic!("{other:?}"),
        }
    }
}

fn session(teller: &Teller, budget: usize, second: Slow) -> Session {
    let mut session = teller.session(budget, teller.snapshot(), "", Slow::Coalesce);
    let filter = Filter { selector: "app=web".parse().unwrap(), ..Filter::default() };
    session.subscribe(Subscription::new("t".to_owned(), TOPIC, filter, Mode::Full, second, true));
    session.begin("t", GVR, teller.snapshot(), teller.journal.last());
    session
}

#[test]
fn what_is_folded_does_not_overtake_what_one_of_its_subscriptions_is_told() {
    let mut teller = Teller::new();
    teller.put(0, "web", "0");
    let mut session = session(&teller, 16_000, Slow::Coalesce);
    let mut views = Views::default();
    views.read(&mut session, 100);
    // Both see the first and the last; what is between is another thing to each.
    for (app, value) in [("web", "1"), ("api", "2"), ("web", "3"), ("web", "4")] {
        let news = teller.put(0, app, value);
        session.news(&news);
    }
    // Enough for it to be folded.
    for at in 1.. {
        if let Some(fold) = session.take_fold() {
            assert!(session.put_fold(fold.run()) > 0);
            break;
        }
        let news = teller.put(at, "api", "0");
        session.news(&news);
    }
    views.read(&mut session, usize::MAX);
    assert!(!views.is_closed);
    assert_eq!(views.values["s"], teller.values(""));
    assert_eq!(views.values["t"], teller.values("app=web"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    /// For any order of changes and reads, each of two subscriptions that see the same objects is told of them in order.
    #[test]
    fn each_of_two_subscriptions_knows_what_there_is(
        acts in acts(), budget in 6_000usize..40_000, allows in any::<bool>()
    ) {
        let app = |web: bool| if web { "web" } else { "api" };
        let mut teller = Teller::new();
        (0..3).for_each(|at| _ = teller.put(at, app(at == 1), "first"));
        let mut session = session(&teller, budget, if allows { Slow::Coalesce } else { Slow::Close });
        let mut views = Views::default();
        for act in acts {
            match act {
                Act::Put(at, web, value) => {
                    let news = teller.put(at % 2, app(web), &value.to_string());
                    session.news(&news);
                }
                Act::Remove(at) => {
                    if let Some(news) = teller.remove(at % 2) {
                        session.news(&news);
                    }
                }
                Act::Read(most) => views.read(&mut session, most),
                Act::Fold => _ = fold(&mut session),
                Act::FoldAround(at, value) => {
                    let taken = session.take_fold();
                    let news = teller.put(at % 2, "web", &value.to_string());
                    session.news(&news);
                    if let Some(taken) = taken {
                        session.put_fold(taken.run());
                    }
                }
            }
        }
        views.read(&mut session, usize::MAX);
        if !views.is_closed {
            prop_assert_eq!(&views.values["s"], &teller.values(""));
            prop_assert_eq!(&views.values["t"], &teller.values("app=web"));
        }
    }
}
