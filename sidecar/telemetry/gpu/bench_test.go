package gpu

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/telemetry/gpu/gputest"
)

// recorded is a source that parses the same recorded exposition for every node.
type recorded struct {
	parser *Parser
	texts  [][]byte // of consecutive looks
	look   int
}

func (r *recorded) Read(_ context.Context, nodes []Node) ([]Reading, error) {
	out := make([]Reading, len(nodes))
	var g gather
	text := r.texts[r.look%len(r.texts)]
	r.look++
	for i := range nodes {
		rows, _, err := r.parser.parse(&g, text)
		out[i] = Reading{Rows: rows, Err: err}
	}
	return out, nil
}

// textOf8 is the exposition of a node of 8 GPUs at a look.
func textOf8(look int) []byte {
	n := gputest.Node{Version: gputest.V49, Host: "gpu0001.cluster.example.org"}
	for i := range 8 {
		d := gputest.Device{Index: i, Energy: float64(1000 * look)}
		if busy(&d); i == 7 {
			rest(&d)
		}
		n.Devices = append(n.Devices, d)
	}
	return n.Text()
}

// BenchmarkCycle is one look at 10,000 nodes of 8 GPUs: parsing, judging and joining with 10,000 jobs.
func BenchmarkCycle(b *testing.B) {
	const nodes = 10_000
	r := &recorded{parser: NewParser(DefaultTable()), texts: [][]byte{textOf8(1), textOf8(2), textOf8(3)}}
	w := Watch{Source: r, Tracker: Tracker{MaxAge: 2 * cluster.Minute}, Book: Book{TellAfter: 30 * cluster.Minute, MaxGap: 90 * cluster.Second}}
	var list []Node
	var holders []Holder
	for i := range nodes {
		name := fmt.Sprintf("gpu%05d", i)
		list = append(list, Node{Name: name})
		holders = append(holders, Holder{Key: cluster.JobKey(i + 1), ID: cluster.JobID{ID: int64(i + 1)}, Record: int64(i + 1), Start: began, Running: true,
			Type: cluster.JobType{User: "ann", Command: fmt.Sprint("train ", i%1000), GPUs: 8}, Typed: true,
			Holds: []cluster.Holding{{Node: name, Model: "h100", Size: cluster.Whole(8), Index: []int{0, 1, 2, 3, 4, 5, 6, 7}}}})
	}
	now := began
	look := func() {
		now = now.Add(30 * cluster.Second)
		report, ok := w.Look(b.Context(), list, holders, func() cluster.Instant { return now })
		if !ok || len(report.GPUs) != 8*nodes {
			b.Fatalf("%d GPUs", len(report.GPUs))
		}
		w.Book.Settle()
	}
	look()
	b.SetBytes(int64(nodes * len(r.texts[0])))
	b.ReportAllocs()
	for b.Loop() {
		look()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	b.ReportMetric(float64(m.HeapSys-m.HeapReleased)/(1<<20), "heap-MiB")
}

// BenchmarkParse reads one node of 8 GPUs; BenchmarkExpfmt does so with Prometheus' own parser.
func BenchmarkParse(b *testing.B) {
	p, text := NewParser(DefaultTable()), textOf8(1)
	var g gather
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := p.parse(&g, text); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkExpfmt(b *testing.B) {
	text := textOf8(1)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		p := expfmt.NewTextParser(model.UTF8Validation)
		if _, err := p.TextToMetricFamilies(bytes.NewReader(text)); err != nil {
			b.Fatal(err)
		}
	}
}
