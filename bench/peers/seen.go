package main

import (
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// Beyond this, what is awaited does not come.
const patience = time.Minute

// The annotation that holds the nanoseconds since 1970 at which an update was sent.
const sent = "load.kube-informer.dev/sent"

// No more than so many ages are kept.
const keptAges = 1_000_000

// What a handler has seen, and how it is to look.
type seen struct {
	// Whether it reads whole objects; otherwise only their metadata.
	whole atomic.Bool
	// Events of an update.
	updates *count
	// What was sent when.
	stamps *stamps
	// What was read goes here, so that it is read.
	sink atomic.Uint64
}

func newSeen() *seen {
	return &seen{updates: newCount(), stamps: &stamps{fresh: newCount()}}
}

// A number that grows, and who waits for it to be reached.
type count struct {
	at      atomic.Uint64
	awaited atomic.Uint64
	reached chan struct{}
}

func newCount() *count {
	return &count{reached: make(chan struct{}, 1)}
}

// One more. Whoever waits is woken at the number that is awaited and at no other: to ask again and again would be
// measured.
func (c *count) add() {
	if c.at.Add(1) != c.awaited.Load() {
		return
	}
	select {
	case c.reached <- struct{}{}:
	default:
	}
}

// Returns when it has come so far, or patience has ended.
func (c *count) await(wanted uint64) {
	c.awaited.Store(wanted)
	ended := time.After(patience)
	// What was said may be of an earlier wait: only the number counts.
	for c.at.Load() < wanted {
		select {
		case <-c.reached:
		case <-ended:
			return
		}
	}
}

// When updates were sent, and how old that was when the handler was called.
type stamps struct {
	wanted atomic.Bool
	since  atomic.Int64
	fresh  *count
	lock   sync.Mutex
	ages   []int64
}

// From now on the handler looks for them, and those of that time and later count; what was seen before is forgotten.
func (s *stamps) wantSince(nanos uint64) {
	s.since.Store(int64(nanos))
	s.takeAges()
	s.fresh.at.Store(0)
	s.wanted.Store(true)
}

// An object came with these annotations.
func (s *stamps) saw(annotations map[string]string) {
	arrived := time.Now().UnixNano()
	stamp, err := strconv.ParseInt(annotations[sent], 10, 64)
	if err != nil || stamp < s.since.Load() {
		return
	}
	s.lock.Lock()
	if len(s.ages) < keptAges {
		s.ages = append(s.ages, max(0, arrived-stamp))
	}
	s.lock.Unlock()
	s.fresh.add()
}

// The nanoseconds from the write to the handler, of all that were seen since the last call.
func (s *stamps) takeAges() []int64 {
	s.lock.Lock()
	defer s.lock.Unlock()
	ages := s.ages
	s.ages = nil
	if ages == nil {
		ages = []int64{}
	}
	return ages
}
