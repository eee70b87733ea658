package slurm

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

func TestGresList(t *testing.T) {
	t.Parallel()
	for s, want := range map[string][]gres{
		"":                                 nil,
		"N/A":                              nil,
		"gpu":                              {{name: "gpu", count: 1}},
		"gres/gpu":                         {{name: "gpu", count: 1}},
		"gpu:4":                            {{name: "gpu", count: 4}},
		"gres/gpu=1":                       {{name: "gpu", count: 1}},
		"gres/gpu:v100=2":                  {{name: "gpu", model: "v100", count: 2}},
		"gpu:v100":                         {{name: "gpu", model: "v100", count: 1}},
		"gpu:v100:4(S:0-1),shard:v100:8":   {{name: "gpu", model: "v100", count: 4, notes: "S:0-1"}, {name: "shard", model: "v100", count: 8}},
		"gpu:v100:2(IDX:0-1),shard:1(1/2)": {{name: "gpu", model: "v100", count: 2, notes: "IDX:0-1"}, {name: "shard", count: 1, notes: "1/2"}},
		"gpu:(null):2(IDX:0,3)":            {{name: "gpu", count: 2, notes: "IDX:0,3"}},
		"gpu:2k":                           {{name: "gpu", count: 2048}},
		"gpu:v100:4G":                      {{name: "gpu", model: "v100", count: 4 << 30}},
		"gpu:1g.5gb:2":                     {{name: "gpu", model: "1g.5gb", count: 2}},
		"gpu:99999999999":                  {{name: "gpu", count: 99999999999}},
		"gpu:99999999999999999999":         {{name: "gpu", count: mostThings}},
		"gpu:9000000P":                     {{name: "gpu", count: mostThings}},
	} {
		got, err := gresList(s)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("gresList(%q) = %+v, %v; want %+v", s, got, err, want)
		}
	}
	for _, s := range []string{"gpu:v100:many", "gpu:-1", "gpu:v100:-1", "shard:a:b:1", "gres/mps:x:y:z"} {
		if got, err := gresList(s + ",gpu:k80:2,a:b:c:1"); err == nil || !reflect.DeepEqual(got, []gres{{name: "gpu", model: "k80", count: 2}}) {
			t.Errorf("gresList(%q) = %+v, %v; want an error, and the rest", s, got, err)
		}
	}
	for _, s := range []string{"a:b:c:1", "(x)", "gpus:a:b:c", "fpga:-1"} {
		if got, err := gresList(s + ",gpu:2"); err != nil || !reflect.DeepEqual(got, []gres{{name: "gpu", count: 2}}) {
			t.Errorf("gresList(%q) = %+v, %v; foreign resources are no matter", s, got, err)
		}
	}
	g, _ := gresList("gpu:v100:3(IDX:0,2-3)")
	if !reflect.DeepEqual(g[0].indices(), []int{0, 2, 3}) {
		t.Errorf("indices = %v", g[0].indices())
	}
	g, _ = gresList("shard:v100:2(0/2,1/2,1/2,0/2)")
	if !reflect.DeepEqual(g[0].shared(), []usedPart{{1, 1, 2}, {2, 1, 2}}) {
		t.Errorf("shared = %v", g[0].shared())
	}
}

func TestTaskNumbers(t *testing.T) {
	t.Parallel()
	first := func(n int) (out []int) {
		for i := range n {
			out = append(out, i)
		}
		return out
	}
	for s, want := range map[string][]int{
		"7":                {7},
		"0-4,11-13":        {0, 1, 2, 3, 4, 11, 12, 13},
		"0-9:3%2":          {0, 3, 6, 9},
		"[1-3%5]":          {1, 2, 3},
		"1,3,5,7,11-1...":  {1, 3, 5, 7},
		"0-3000":           first(10),
		"0-2147483646%100": first(10),
		"1,1,2-3,3":        {1, 2, 3},
		"5,1":              {1, 5},
		"2147483646-":      nil,
		"4-2":              nil,
		"x":                nil,
		"...":              {},
		"0-4294967294":     nil,
	} {
		got, _, err := taskNumbers(s, 10)
		if want == nil {
			if err == nil {
				t.Errorf("taskNumbers(%q) = %v; want an error", s, got)
			}
			continue
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("taskNumbers(%q) = %v, %v; want %v", s, got, err, want)
		}
	}
}

func TestTaskNumbersCounts(t *testing.T) {
	t.Parallel()
	if _, total, err := taskNumbers("0-9:3,20-4000019%2", 10); total != 4_000_004 || err != nil {
		t.Errorf("total %d, %v", total, err)
	}
}

func TestMegabytes(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]int64{"100M": 100, "100": 100, "4G": 4096, "1.50T": 1572864, "1K": 1, "1500K": 2, "": 0, "-1M": 0, "x": 0, "1e300G": mostMemory, "1e400": mostMemory, "99999999P": mostMemory, "NaN": 0} {
		if got := megabytes(s); got != want {
			t.Errorf("megabytes(%q) = %d; want %d", s, got, want)
		}
	}
}

func TestMark(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]struct {
		marked      bool
		begin, gate cluster.Instant
	}{
		"":                                  {},
		"fl:":                               {},
		"fl:begin=":                         {},
		"fl:begin=-5":                       {},
		"fl:gate=5":                         {},
		"fl:begin=0,gate=1795228656":        {true, 0, 1795228656000},
		"fl:begin=1795228656,gate=1":        {true, 1795228656000, 1000},
		"fl:begin=2,gate=-1":                {true, 2000, 0},
		"site note fl:gate=9,begin=7; more": {true, 7000, 9000},
		"half:begin=3":                      {},
		"fairlease:kind=fl:begin=3,gate=4":  {}, // a user's words
		"xfl:begin=1 fl:begin=2":            {true, 2000, 0},
	} {
		if marked, begin, gate := mark(s); marked != want.marked || begin != want.begin || gate != want.gate {
			t.Errorf("mark(%q) = %v %v %v; want %+v", s, marked, begin, gate, want)
		}
	}
}

func TestNumbers(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]number{
		`5`:    {n: 5, set: true},
		`"5"`:  {n: 5, set: true},
		`5.9`:  {n: 5, set: true},
		`-3`:   {n: -3, set: true},
		`true`: {n: 1, set: true},
		`null`: {},
		`""`:   {},
		`{"set":true,"infinite":false,"number":9000000000}`: {n: 9000000000, set: true},
		`{"set":false,"infinite":false,"number":7}`:         {},
		`{"set":true,"infinite":true,"number":0}`:           {infinite: true},
		`{"number":7}`:         {n: 7, set: true},
		`{}`:                   {},
		`"Infinity"`:           {infinite: true},
		`4294967295`:           {infinite: true},
		`4294967294`:           {},
		`18446744073709551615`: {infinite: true},
		`18446744073709551614`: {},
		`9223372036854775807`:  {n: 1<<63 - 1, set: true},
	} {
		r := newReader(strings.NewReader(text))
		if got := r.number(); got != want || r.junk != "" || r.err != nil {
			t.Errorf("number of %s = %+v, junk %q, %v; want %+v", text, got, r.junk, r.err, want)
		}
	}
	for _, text := range []string{`[]`, `"x"`, `18446744073709551613`, `"NaN"`, `{"number":[]}`} {
		r := newReader(strings.NewReader(text))
		if got := r.number(); r.junk == "" && r.err == nil {
			t.Errorf("number of %s = %+v; want junk", text, got)
		}
	}
}

func TestNodes(t *testing.T) {
	t.Parallel()
	gpus := func(list ...any) (out []cluster.GPUs) {
		for i := 0; i < len(list); i += 2 {
			out = append(out, cluster.GPUs{Model: list[i].(string), Count: list[i+1].(int)})
		}
		return out
	}
	for _, c := range []struct {
		record    string
		gpus      []cluster.GPUs
		bad, busy string
	}{
		{`"state":["IDLE"],"gres":"gpu:v100:4(S:0-1),shard:v100:8"`, gpus("v100", 4), "", ""},
		{`"state":["MIXED","PLANNED"],"gres":"gpu:v100:2(S:0),gpu:k80:4(S:1)"`, gpus("k80", 4, "v100", 2), "", ""},
		{`"state":["MIXED"],"gres":"gpu:v100:2(S:0),gpu:v100:2(S:1)","gres_drained":"gpu:v100:1(S:0)"`, gpus("v100", 3), "", ""},
		{`"state":["MIXED"],"gres":"gpu:v100:4","gres_drained":"N/A"`, gpus("v100", 4), "", ""},
		{`"state":["IDLE"],"gres":"gpu:4"`, gpus("gpu", 4), "", ""},
		{`"state":["IDLE"],"gres":""`, nil, "", ""},
		{`"state":"IDLE","gres":"shard:8"`, nil, "", ""},
		{`"state":["ALLOCATED","DRAIN"],"gres":"gpu:4"`, gpus("gpu", 4), "drained", ""},
		{`"state":["DOWN","NOT_RESPONDING"],"gres":"gpu:4"`, gpus("gpu", 4), "down", ""},
		{`"state":["ALLOCATED","NOT_RESPONDING"],"gres":"gpu:4"`, gpus("gpu", 4), "not responding", ""},
		{`"state":["IDLE","FAIL"],"gres":"gpu:4"`, gpus("gpu", 4), "fail", ""},
		{`"state":["UNKNOWN"],"gres":"gpu:4"`, gpus("gpu", 4), "unknown", ""},
		{`"state":["MIXED","COMPLETING"],"gres":"gpu:4"`, gpus("gpu", 4), "", "completing"},
		{`"state":["IDLE","COMPLETING","RESERVED","MAINTENANCE"],"gres":"gpu:4"`, gpus("gpu", 4), "", "maintenance"},
		{`"state":["IDLE","REBOOT_ISSUED"],"gres":"gpu:4"`, gpus("gpu", 4), "", "reboot"},
		{`"state":["ALLOCATED","POWERING_UP"],"gres":"gpu:4"`, gpus("gpu", 4), "", ""},
		{`"state":["ALLOCATED","NOT_RESPONDING","POWERING_UP"],"gres":"gpu:4"`, gpus("gpu", 4), "", "powering up"},
		{`"state":["ALLOCATED","CLOUD","POWER_UP","NOT_RESPONDING"],"gres":"gpu:4"`, gpus("gpu", 4), "", "powering up"},
		{`"state":["IDLE","NOT_RESPONDING","REBOOT_ISSUED"],"gres":"gpu:4"`, gpus("gpu", 4), "", "powering up"},
		{`"state":["DOWN","REBOOT_ISSUED"],"gres":"gpu:4"`, gpus("gpu", 4), "", "reboot"},         // scontrol reboot
		{`"state":["DOWN","DRAIN","REBOOT_ISSUED"],"gres":"gpu:4"`, gpus("gpu", 4), "", "reboot"}, // scontrol reboot ASAP
		{`"state":["IDLE","FAIL","REBOOT_ISSUED"],"gres":"gpu:4"`, gpus("gpu", 4), "fail", "reboot"},
		{`"state":["MIXED","DRAIN","REBOOT_REQUESTED"],"gres":"gpu:4"`, gpus("gpu", 4), "drained", "reboot"},  // ASAP, while jobs run
		{`"state":["MIXED","DRAIN","POWER_DOWN"],"gres":"gpu:4"`, gpus("gpu", 4), "drained", "powering down"}, // POWER_DOWN_ASAP, while jobs run
		{`"state":["IDLE","POWERED_DOWN"],"gres":"gpu:4"`, gpus("gpu", 4), "", ""},
		{`"state":["IDLE","POWERED_DOWN","NOT_RESPONDING"],"gres":"gpu:4"`, gpus("gpu", 4), "", ""},
		{`"state":["IDLE","NOT_RESPONDING","POWERING_DOWN"],"gres":"gpu:4"`, gpus("gpu", 4), "", "powering down"},
		{`"state":["DOWN","NOT_RESPONDING","POWERED_DOWN"],"gres":"gpu:4"`, gpus("gpu", 4), "down", ""},
		{`"state":["MIXED","NOT_RESPONDING","POWER_DOWN"],"gres":"gpu:4"`, gpus("gpu", 4), "not responding", "powering down"}, // it still has jobs
		{`"state":["MIXED","NOT_RESPONDING","REBOOT_REQUESTED"],"gres":"gpu:4"`, gpus("gpu", 4), "not responding", "reboot"},  // likewise
		{`"state":["DOWN","NOT_RESPONDING","POWERING_UP"],"gres":"gpu:4"`, gpus("gpu", 4), "down", "powering up"},
		{`"state":["IDLE","DRAIN","NOT_RESPONDING","POWERING_UP"],"gres":"gpu:4"`, gpus("gpu", 4), "drained", "powering up"},
		{`"state":["MIXED","POWER_DRAIN"],"gres":"gpu:4"`, gpus("gpu", 4), "", "powering down"},
		{`"state":["IDLE"],"gres":"fpga:x:y:z,gpu:v100:4,nic:::"`, gpus("v100", 4), "", ""},
		{`"state":["IDLE"],"gres":"gpu:v100:4,gpu:a:b:c","gres_drained":"gpu:v100:1,lustre:-5:x:y"`, gpus("v100", 3), "", ""},
	} {
		r := newReader(strings.NewReader(`{"name":"n1","cpus":16,"effective_cpus":14,"real_memory":8000,"specialized_memory":500,` + c.record + `}`))
		n := readNode(r)
		if r.junk != "" || r.err != nil || !slices.Equal(n.GPUs, c.gpus) || n.Bad != c.bad || n.Busy != c.busy || n.CPUs != 14 || n.MemoryMB != 7500 {
			t.Errorf("%s: %+v, junk %q, %v", c.record, n, r.junk, r.err)
		}
	}
}

// Drained GPUs are known if Slurm reports them; they are no capacity either way.
func TestDrainedGPUs(t *testing.T) {
	t.Parallel()
	for drained, want := range map[string]struct {
		gpus    int
		indices []int
	}{
		"gpu:a100:2(IDX:3,5)":                     {6, []int{3, 5}},
		"gpu:a100:4(IDX:0-2,7)":                   {4, []int{0, 1, 2, 7}},
		"gpu:a100:1(IDX:5),gpu:a100:2(IDX:0,3)":   {5, []int{0, 3, 5}},
		"gpu:a100:2(IDX:3,5),shard:a100:2(IDX:0)": {6, []int{3, 5}},
		"gpu:a100:2":                              {6, nil},
		"gpu:a100:2(S:0)":                         {6, nil},
		"gpu:a100:2(IDX:x)":                       {6, nil},
		"gpu:a100:0(IDX:N/A)":                     {8, nil},
		"N/A":                                     {8, nil},
		"":                                        {8, nil},
		"gpu:a100:9(IDX:0-8)":                     {0, []int{0, 1, 2, 3, 4, 5, 6, 7, 8}},
		"gpu:(null):2(IDX:0-1)":                   {6, []int{0, 1}},
		"gpu:1,nic:mlx5:many:1":                   {7, nil},
	} {
		r := newReader(strings.NewReader(`{"name":"n1","state":["IDLE"],"gres":"gpu:a100:8(S:0-1)","gres_drained":"` + drained + `"}`))
		n := readNode(r)
		if r.junk != "" || len(n.GPUs) != 1 || n.GPUs[0].Count != want.gpus || !slices.Equal(n.Drained, want.indices) {
			t.Errorf("%s: %+v, junk %q; want %+v", drained, n, r.junk, want)
		}
	}
}

// The forms that sbatch -L and scontrol update take on Slurm 24.11 and 26.05. Without an exact one of ours, a job is not gated.
func TestLicenses(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]struct {
		own            string
		locked, either bool
	}{
		"":                                 {},
		"fairlease":                        {"", true, false},
		"fairlease:1":                      {"", true, false},
		"fairlease=1":                      {"", true, false},
		"fairlease:01":                     {"", true, false},
		"fairlease:2":                      {"", true, false},
		"matlab:1,fairlease:1":             {"matlab:1", true, false},
		"matlab:1;fairlease:1":             {"matlab:1", true, false},
		"fairlease,matlab:2;ansys":         {"matlab:2,ansys", true, false},
		"fairlease:0":                      {"", false, false},
		"fairlease=0":                      {"", false, false},
		"fairlease:":                       {"", false, false},
		"fairlease: 1":                     {"", false, false},
		"fairlease:+1":                     {"", false, false},
		"fairlease:0,matlab:1":             {"matlab:1", false, false},
		"fairlease:1,fairlease:0":          {"", false, false},
		"fairlease:1,fairlease:1":          {"", false, false},
		"fairlease:1,fairlease:2147483647": {"", false, false},
		"fairlease:4294967296":             {"", false, false},
		"fairlease:1073741823":             {"", true, false},
		"fairlease:1073741824":             {"", false, false},
		"fairlease@server:1":               {"fairlease@server:1", false, false},
		"fairleases:1":                     {"fairleases:1", false, false},
		"fairlease:1|matlab:1":             {"fairlease:1|matlab:1", false, true},
		"fairlease:0|matlab:1":             {"fairlease:0|matlab:1", false, true},
	} {
		if own, locked, either := licenses(s, "fairlease"); own != want.own || locked != want.locked || either != want.either {
			t.Errorf("licenses(%q) = %q %v %v; want %+v", s, own, locked, either, want)
		}
	}
	if own, locked, _ := licenses("fairlease:1", ""); own != "fairlease:1" || locked {
		t.Errorf("without a licence for gates: %q %v", own, locked)
	}
}
