package main

import (
	"sync/atomic"
	"time"
)

// Beyond this, what is awaited does not come.
const patience = time.Minute

// What a handler has seen, and how it is to look.
type seen struct {
	// Whether it reads whole objects; otherwise only their metadata.
	whole atomic.Bool
	// Events of an update.
	updates atomic.Uint64
	awaited atomic.Uint64
	reached chan struct{}
	// What was read goes here, so that it is read.
	sink atomic.Uint64
}

func newSeen() *seen {
	return &seen{reached: make(chan struct{}, 1)}
}

// One more update. Whoever waits is woken at the number that is awaited and at no other: to ask again and again would be
// measured.
func (s *seen) update() {
	if s.updates.Add(1) != s.awaited.Load() {
		return
	}
	select {
	case s.reached <- struct{}{}:
	default:
	}
}

// Returns when so many updates were seen in all, or patience has ended.
func (s *seen) await(updates uint64) {
	s.awaited.Store(updates)
	ended := time.After(patience)
	// What was said may be of an earlier wait: only the number counts.
	for s.updates.Load() < updates {
		select {
		case <-s.reached:
		case <-ended:
			return
		}
	}
}
