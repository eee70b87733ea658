package view

import (
	"strings"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/store"
)

func of[T any](x T) *T { return &x }

var someGPUs = []store.GPU{
	{Node: "n1", Index: 0, Model: "H100", State: "fresh", Job: of("7"), User: of("ann"), Tenant: of("bio"), Util: of(0.0), Power: of(70.0), Memory: of(int64(4 << 30)), Size: of(int64(80 << 30)), Idle: true, IdleSince: of(time.Unix(600, 0))},
	{Node: "n1", Index: 1, Model: "H100", State: "fresh", Job: of("7"), User: of("ann"), Tenant: of("bio"), Util: of(0.9), Tensor: of(0.4), Power: of(610.0), Memory: of(int64(60 << 30)), Size: of(int64(80 << 30)), Remarks: of("drift,straggler")},
	{Node: "n2", Index: 3, Instance: "7", Model: "A100", State: "stale", Why: "no value has changed", Job: of("7")},
}

func TestGPUTable(t *testing.T) {
	var b strings.Builder
	p := &Page{Out: &b, Form: Form{Parsable: true}, Zone: time.UTC}
	p.Table(p.GPUTable(someGPUs))
	want := `NODE|GPU|MODEL|JOB|USER|TENANT|STATE|UTIL|TENSOR|POWER|MEMORY|IDLE_SINCE|REMARKS|WHY
n1|0|H100|7|ann|bio|fresh|0%|-|70W|4.0/80G|1970-01-01 00:10:00|-|-
n1|1|H100|7|ann|bio|fresh|90%|40%|610W|60.0/80G|-|drift,straggler|-
n2|3.7|A100|7|-|-|stale|-|-|-|-|-|-|no value has changed
`
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
}

func TestGPUsInWords(t *testing.T) {
	got := strings.Join(gpuNotes(someGPUs, time.Unix(3000, 0)), "\n")
	want := "has held 1 idle GPU for 40 min\na kernel runs 45% of the time, 340 W a GPU, at most 60.0 of 80 GiB of memory\n1 GPU not seen well, stale: no value has changed"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if gpuNotes(nil, time.Now()) != nil {
		t.Error("words about no GPU")
	}
	remarks := []store.Remark{{Job: "7", User: "ann", Kind: "stall", Text: "has stood still"}, {Kind: "drift"}, {Kind: "drift"}}
	if got, want := Remarks(remarks), "drift 2, stall 1; the oldest, stall: job 7 of ann, has stood still"; got != want || Remarks(nil) != "" {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	states := []store.GPULook{{State: "fresh", Nodes: 12, Read: of(time.Unix(600, 0))}, {State: "silent", Nodes: 4}}
	nodes := []store.GPUNode{{Node: "a", State: "silent", Why: "no answer"}, {Node: "b", State: "silent", Why: "refused"}, {Node: "c"}, {Node: "d"}}
	got = gpuLooks(states, nodes, time.Unix(1200, 0))
	if want := "12 nodes fresh, 4 nodes silent; nothing was read for 10 min; a is silent: no answer; b is silent: refused; c is : ; and 1 more (fairlease gpus)"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if s := gpuLooks(nil, nil, time.Now()); s != "" {
		t.Errorf("without telemetry: %q", s)
	}
}
