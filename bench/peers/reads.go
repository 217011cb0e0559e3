package main

import (
	"sync"
	"sync/atomic"
	"time"
)

// How long each kind of read is repeated.
const turn = time.Second

// So many objects are hot, and so many values of the index.
const (
	hotObjects = 64
	hotValues  = 8
)

// The ways to read a cache. Each returns what it found: the parts of objects, so that they are looked at.
type reads struct {
	keys   []string
	values []string
	labels []string
	// These look into the typed objects.
	get     func(key string) int
	indexed func(value string) int
	list    func() int
	// Looks at the names of what has a value of the label.
	labelled func(value string) int
	// Looks at how many there are.
	snapshot func() int
}

// What a read takes, and what it finds.
type readTimes struct {
	GetNs     float64 `json:"get_ns"`
	IndexedNs float64 `json:"indexed_ns"`
	ListNs    float64 `json:"list_ns"`
	// The parts that each finds, over all that is hot: equal for all contestants.
	Found [3]int `json:"found"`
}

// The same of many readers at once: the time of the wall, divided by the reads of all.
type readerTimes struct {
	Readers    int     `json:"readers"`
	GetNs      float64 `json:"get_ns"`
	IndexedNs  float64 `json:"indexed_ns"`
	LabelledNs float64 `json:"labelled_ns"`
	SnapshotNs float64 `json:"snapshot_ns"`
	Found      [4]int  `json:"found"`
}

func (r *reads) measure() *readTimes {
	got, getNs := timed(spread(r.keys, hotObjects), r.get, 1)
	indexed, indexedNs := timed(spread(r.values, hotValues), r.indexed, 1)
	listed, listNs := timed([]string{""}, func(string) int { return r.list() }, 1)
	return &readTimes{GetNs: getNs, IndexedNs: indexedNs, ListNs: listNs, Found: [3]int{got, indexed, listed}}
}

func (r *reads) measureWith(readers int) *readerTimes {
	got, getNs := timed(spread(r.keys, hotObjects), r.get, readers)
	indexed, indexedNs := timed(spread(r.values, hotValues), r.indexed, readers)
	labelled, labelledNs := timed(spread(r.labels, hotValues), r.labelled, readers)
	all, snapshotNs := timed([]string{""}, func(string) int { return r.snapshot() }, readers)
	return &readerTimes{
		Readers: readers, GetNs: getNs, IndexedNs: indexedNs, LabelledNs: labelledNs, SnapshotNs: snapshotNs,
		Found: [4]int{got, indexed, labelled, all},
	}
}

// So many readers read everything in turn, again and again; what a first pass found, and the nanoseconds per read.
func timed(items []string, read func(string) int, readers int) (int, float64) {
	found := 0
	for _, item := range items {
		found += read(item)
	}
	var passes, sum atomic.Int64
	var done sync.WaitGroup
	start := time.Now()
	reader := func() {
		seen := 0
		for time.Since(start) < turn {
			for _, item := range items {
				seen += read(item)
			}
			passes.Add(1)
		}
		sum.Add(int64(seen))
	}
	for range readers - 1 {
		done.Go(reader)
	}
	reader()
	done.Wait()
	took := time.Since(start)
	sink.Add(sum.Load())
	return found, float64(took.Nanoseconds()) / float64(max(1, passes.Load())*int64(max(1, len(items))))
}

// What was read goes here, so that it is read.
var sink atomic.Int64

// So many of the sorted items, from everywhere.
func spread(items []string, count int) []string {
	count = min(count, len(items))
	chosen := make([]string, 0, count)
	for at := range count {
		chosen = append(chosen, items[at*len(items)/count])
	}
	return chosen
}
