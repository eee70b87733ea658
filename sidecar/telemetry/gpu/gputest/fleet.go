package gputest

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
)

// Fleet is the exporters of some nodes, by name. They show the values of Nodes, or play records. Over HTTP, the one of a
// node is at /NODE/metrics. Where the fleet is served, change it in Change only.
type Fleet struct {
	mu     sync.Mutex
	Nodes  map[string]*Node
	Silent map[string]error // nodes whose exporters do not answer, and why
	plays  []play
}

// play is a record that one GPU shows.
type play struct {
	node   string
	device int
	record []Device
	next   int
}

// NewFleet makes exporters of a version for nodes with so many GPUs each, which all do nothing.
func NewFleet(v Version, gpus map[string]int) *Fleet {
	f := &Fleet{Nodes: map[string]*Node{}, Silent: map[string]error{}}
	for name, n := range gpus {
		f.Nodes[name] = &Node{Version: v, Host: name}
		for i := range n {
			f.Nodes[name].Devices = append(f.Nodes[name].Devices, Device{Index: i, Power: 70})
		}
	}
	return f
}

// Change changes the fleet while it is served.
func (f *Fleet) Change(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// Play makes a GPU show a record of values, the next one at each Step, over and over. The GPU keeps its index and energy.
func (f *Fleet) Play(node string, index int, record ...Device) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.plays {
		if p := &f.plays[i]; p.node == node && p.device == index {
			p.record, p.next = record, 0
			return
		}
	}
	f.plays = append(f.plays, play{node, index, record, 0})
}

// Step lets some seconds pass in which the exporters read their GPUs once.
func (f *Fleet) Step(seconds float64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.plays {
		p := &f.plays[i]
		d := &f.Nodes[p.node].Devices[p.device]
		was := *d
		*d = p.record[p.next%len(p.record)]
		d.Index, d.Energy = was.Index, was.Energy
		p.next++
	}
	for _, n := range f.Nodes {
		for i := range n.Devices {
			n.Devices[i].Energy += n.Devices[i].Power * seconds
		}
	}
}

// Text gives the exposition of a node.
func (f *Fleet) Text(node string) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.Silent[node]; err != nil {
		return nil, err
	}
	if f.Nodes[node] == nil {
		return nil, fmt.Errorf("there is no node %s", node)
	}
	return f.Nodes[node].Text(), nil
}

// ServeHTTP implements http.Handler.
func (f *Fleet) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text, err := f.Text(strings.Split(r.URL.Path, "/")[1])
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_, _ = w.Write(text)
}
