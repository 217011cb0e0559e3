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

// The same of many readers at once: the time of the wall, and what the whole process used of the processor, divided by the
// reads of all.
type readerTimes struct {
	Readers       int     `json:"readers"`
	GetNs         float64 `json:"get_ns"`
	GetCPUNs      float64 `json:"get_cpu_ns"`
	IndexedNs     float64 `json:"indexed_ns"`
	IndexedCPUNs  float64 `json:"indexed_cpu_ns"`
	LabelledNs    float64 `json:"labelled_ns"`
	LabelledCPUNs float64 `json:"labelled_cpu_ns"`
	SnapshotNs    float64 `json:"snapshot_ns"`
	SnapshotCPUNs float64 `json:"snapshot_cpu_ns"`
	Found         [4]int  `json:"found"`
}

// What a first pass found, and the nanoseconds per read of all that followed.
type times struct {
	found         int
	wallNs, cpuNs float64
}

func (r *reads) measure() (*readTimes, error) {
	get, err := timed(spread(r.keys, hotObjects), r.get, 1)
	if err != nil {
		return nil, err
	}
	indexed, err := timed(spread(r.values, hotValues), r.indexed, 1)
	if err != nil {
		return nil, err
	}
	list, err := timed([]string{""}, func(string) int { return r.list() }, 1)
	if err != nil {
		return nil, err
	}
	return &readTimes{
		GetNs: get.wallNs, IndexedNs: indexed.wallNs, ListNs: list.wallNs,
		Found: [3]int{get.found, indexed.found, list.found},
	}, nil
}

func (r *reads) measureWith(readers int) (*readerTimes, error) {
	get, err := timed(spread(r.keys, hotObjects), r.get, readers)
	if err != nil {
		return nil, err
	}
	indexed, err := timed(spread(r.values, hotValues), r.indexed, readers)
	if err != nil {
		return nil, err
	}
	labelled, err := timed(spread(r.labels, hotValues), r.labelled, readers)
	if err != nil {
		return nil, err
	}
	snapshot, err := timed([]string{""}, func(string) int { return r.snapshot() }, readers)
	if err != nil {
		return nil, err
	}
	return &readerTimes{
		Readers: readers,
		GetNs:   get.wallNs, GetCPUNs: get.cpuNs,
		IndexedNs: indexed.wallNs, IndexedCPUNs: indexed.cpuNs,
		LabelledNs: labelled.wallNs, LabelledCPUNs: labelled.cpuNs,
		SnapshotNs: snapshot.wallNs, SnapshotCPUNs: snapshot.cpuNs,
		Found: [4]int{get.found, indexed.found, labelled.found, snapshot.found},
	}, nil
}

// So many readers read everything in turn, again and again.
func timed(items []string, read func(string) int, readers int) (*times, error) {
	found := 0
	for _, item := range items {
		found += read(item)
	}
	var passes, sum atomic.Int64
	var done sync.WaitGroup
	before, err := cpuNs()
	if err != nil {
		return nil, err
	}
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
	after, err := cpuNs()
	if err != nil {
		return nil, err
	}
	sink.Add(sum.Load())
	reads := float64(max(1, passes.Load()) * int64(max(1, len(items))))
	return &times{found: found, wallNs: float64(took.Nanoseconds()) / reads, cpuNs: float64(after-before) / reads}, nil
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
