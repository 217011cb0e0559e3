package main

import "time"

// How long each kind of read is repeated.
const turn = time.Second

// So many objects are hot, and so many values of the index.
const (
	hotObjects = 64
	hotValues  = 8
)

// The three ways to read a cache. Each returns what it found: the parts of objects, so that they are looked at.
type reads struct {
	keys    []string
	values  []string
	get     func(key string) int
	indexed func(value string) int
	list    func() int
}

// What a read takes, and what it finds.
type readTimes struct {
	GetNs     float64 `json:"get_ns"`
	IndexedNs float64 `json:"indexed_ns"`
	ListNs    float64 `json:"list_ns"`
	// The parts that each finds, over all that is hot: equal for all contestants.
	Found [3]int `json:"found"`
}

func (r *reads) measure() *readTimes {
	keys, values := spread(r.keys, hotObjects), spread(r.values, hotValues)
	got, getNs := timed(keys, r.get)
	indexed, indexedNs := timed(values, r.indexed)
	listed, listNs := timed([]string{""}, func(string) int { return r.list() })
	return &readTimes{GetNs: getNs, IndexedNs: indexedNs, ListNs: listNs, Found: [3]int{got, indexed, listed}}
}

// Reads everything in turn, again and again; what the first pass found, and the nanoseconds per read.
func timed(items []string, read func(string) int) (int, float64) {
	found := 0
	for _, item := range items {
		found += read(item)
	}
	passes, start := 0, time.Now()
	for time.Since(start) < turn {
		for _, item := range items {
			sink += read(item)
		}
		passes++
	}
	return found, float64(time.Since(start).Nanoseconds()) / float64(passes*max(1, len(items)))
}

var sink int

// So many of the sorted items, from everywhere.
func spread(items []string, count int) []string {
	count = min(count, len(items))
	chosen := make([]string, 0, count)
	for at := range count {
		chosen = append(chosen, items[at*len(items)/count])
	}
	return chosen
}
