package gpu

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/fairlease/fairlease/sidecar/telemetry/gpu/gputest"
)

// busy and idle are two GPUs of a node.
func devices() []gputest.Device {
	return []gputest.Device{
		{Index: 0, Util: 0.97, Engine: 0.9, SM: 0.8, WithSM: true, Tensor: 0.4, DRAM: 0.5, Power: 612.25, Energy: 90123, Used: 60 << 30, Clock: 1.98e9},
		{Index: 1, Power: 71.5, Energy: 4000, Used: 4 << 20, WithSM: true, Clock: 345e6},
	}
}

func parse(t *testing.T, text string) []Row {
	t.Helper()
	rows, _, err := NewParser(DefaultTable()).Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// near tells whether two values are the same but for what the exporter rounds away.
func near(a, b float64) bool {
	return math.IsNaN(a) && math.IsNaN(b) || math.Abs(a-b) <= 1e-3*max(math.Abs(a), math.Abs(b))
}

// Names and units differ between versions of the exporter; what is read does not.
func TestVersionsAgree(t *testing.T) {
	want := []Values{
		{Util: 0.97, Engine: 0.9, SM: 0.8, Tensor: 0.4, DRAM: 0.5, Power: 612.25, Energy: 90123, Used: 60 << 30, Clock: 1.98e9, PCIeRX: 0.9e9},
		{Power: 71.5, Energy: 4000, Used: 4 << 20, Clock: 345e6},
	}
	for name, version := range map[string]gputest.Version{"3.x": gputest.V3, "4.6": gputest.V46, "4.9": gputest.V49} {
		for _, bare := range []bool{false, true} {
			n := gputest.Node{Version: version, Host: "gpu07", NoHelp: bare, Devices: devices()}
			rows, host, err := NewParser(DefaultTable()).Parse(n.Text())
			if err != nil || host != "gpu07" || len(rows) != 2 {
				t.Fatalf("%s: host %q, %d rows, %v", name, host, len(rows), err)
			}
			for i := range rows {
				for _, m := range []Meaning{Util, Engine, SM, Tensor, DRAM, Power, Energy, Used, Clock, PCIeRX} {
					if got := rows[i].Values[m]; !near(got, want[i][m]) {
						t.Errorf("%s, without HELP %v, GPU %d: %s is %g, want %g", name, bare, i, meaningNames[m], got, want[i][m])
					}
				}
				if got := rows[i].Values.Memory(); got != 80<<30 {
					t.Errorf("%s, GPU %d: memory is %d, want %d", name, i, got, int64(80<<30))
				}
			}
		}
	}
}

// The scale of DCGM_FI_DEV_GPU_UTIL_RATIO is known from its HELP, from values, or from the names beside it; else the
// value is unknown, unless it is 0.
func TestScaleOfUtilRatio(t *testing.T) {
	const name = "DCGM_FI_DEV_GPU_UTIL_RATIO"
	for _, c := range []struct {
		text string
		want []float64
	}{
		{"# HELP " + name + " GPU utilization (in %).\n" + name + "{gpu=\"0\"} 1\n" + name + "{gpu=\"1\"} 0\n", []float64{0.01, 0}},
		{"# HELP " + name + " Ratio of time.\n" + name + "{gpu=\"0\"} 1\n", []float64{1}},
		{name + "{gpu=\"0\"} 1\n" + name + "{gpu=\"1\"} 55\n", []float64{0.01, 0.55}},
		{name + "{gpu=\"0\"} 0.4\n" + name + "{gpu=\"1\"} 55\n", []float64{math.NaN(), 0.55}}, // of two models, in different units?
		{name + "{gpu=\"0\"} 1.000000\n" + name + "{gpu=\"1\"} 0.250000\n", []float64{1, 0.25}},
		{name + "{gpu=\"0\"} 1\nDCGM_FI_DEV_FB_USED_BYTES{gpu=\"0\"} 5\n", []float64{1}},
		{name + "{gpu=\"0\"} 1\nDCGM_FI_DEV_FB_USED{gpu=\"0\"} 5\n", []float64{0.01}},
		{name + "{gpu=\"0\"} 1\n" + name + "{gpu=\"1\"} 0\n", []float64{math.NaN(), 0}},
		{name + "{gpu=\"0\"} 1\nDCGM_FI_DEV_FB_USED{gpu=\"0\"} 5\nDCGM_FI_DEV_FB_USED_BYTES{gpu=\"1\"} 5\n", []float64{math.NaN()}},
		{"# HELP " + name + " Ratio of time.\n" + name + "{gpu=\"0\"} 55\n", []float64{math.NaN()}},
		{name + "{gpu=\"0\"} NaN\n" + name + "{gpu=\"1\"} 55\n", []float64{math.NaN(), 0.55}},
		{name + "{gpu=\"0\"} 20\n" + name + "{gpu=\"0\"} 30\n", []float64{math.NaN()}},
		{name + "{gpu=\"0\"} 20\nDCGM_FI_DEV_GPU_UTIL{gpu=\"0\"} 30\n", []float64{0.3}},
	} {
		rows := parse(t, c.text)
		for i, want := range c.want {
			if got := rows[i].Values[Util]; !near(got, want) {
				t.Errorf("GPU %d of\n%sis %g, want %g", i, c.text, got, want)
			}
		}
	}
}

// Lines as they were published, by exporters of several versions and by a fake.
func TestRecordedLines(t *testing.T) {
	rows := parse(t, `# HELP DCGM_FI_PROF_GR_ENGINE_ACTIVE Ratio of time the graphics engine is active.
# TYPE DCGM_FI_PROF_GR_ENGINE_ACTIVE gauge
DCGM_FI_PROF_GR_ENGINE_ACTIVE{gpu="0",UUID="GPU-0ba88705-8527-ed9e-bc07-1b45788d4ef9",pci_bus_id="00000000:01:00.0",device="nvidia0",modelName="NVIDIA A100-SXM4-80GB",GPU_I_PROFILE="1g.10gb",GPU_I_ID="13",Hostname="<HOSTNAME>",DCGM_FI_DRIVER_VERSION="545.23.08",hpc_job="2115078"} 0.784913
DCGM_FI_PROF_GR_ENGINE_ACTIVE{gpu="0",UUID="GPU-2c2f45e8-0886-e3cc-02be-a4181a13fc9b",pci_bus_id="00000001:00:00.0",device="nvidia0",modelName="NVIDIA A100 80GB PCIe",GPU_I_PROFILE="1g.10gb",GPU_I_ID="8",Hostname="k8s-dra-driver-cluster-worker",DCGM_FI_DRIVER_VERSION="560.35.03"} 0.029399
DCGM_FI_DEV_FB_FREE{Hostname="nvidia-dcgm-exporter-5e5b02",UUID="GPU-00b0279e-9a2e-56e3-90e2-52d8551d6031",container="",device="nvidia1",gpu="1",modelName="nvidia-A100",namespace="",pod=""} 11441
DCGM_FI_DEV_NVLINK_L0{nvlink="0",gpu_uuid="GPU-1",model_name="x"} 3
`)
	if len(rows) != 3 {
		t.Fatalf("%d rows, want 3: %v", len(rows), rows)
	}
	if r := rows[0]; r.Index != 0 || r.Instance != "8" || r.Model != "NVIDIA A100 80GB PCIe" || r.Values[Engine] != 0.029399 || r.Job != "" {
		t.Errorf("first row is %+v", r)
	}
	if r := rows[1]; r.Instance != "13" || r.Job != "2115078" || r.Shared {
		t.Errorf("second row is %+v", r)
	}
	if r := rows[2]; r.Index != 1 || r.Instance != "" || r.Values[Free] != 11441<<20 {
		t.Errorf("third row is %+v", r)
	}
}

// A shared GPU's sample is there once for each job, with the GPU's value.
func TestSharedGPUCountsOnce(t *testing.T) {
	d := devices()
	d[0].Jobs = []string{"7", "8"}
	d[1].Jobs = []string{"9"}
	rows := parse(t, string((&gputest.Node{Version: gputest.V49, Devices: d}).Text()))
	if len(rows) != 2 || !rows[0].Shared || rows[1].Shared || rows[1].Job != "9" || rows[0].Values[Power] != 612.25 {
		t.Errorf("rows are %+v", rows)
	}
}

func TestValuesOutOfBoundsAreMissing(t *testing.T) {
	for _, value := range []string{"NaN", "-1", "+Inf", "-Inf", "9223372036854775794", "1e300", "1e999", "100001"} {
		rows := parse(t, "DCGM_FI_DEV_POWER_USAGE{gpu=\"0\"} "+value+"\nDCGM_FI_DEV_GPU_UTIL{gpu=\"0\"} 40\n")
		if v := rows[0].Values; v.Has(Power) || v[Util] != 0.4 {
			t.Errorf("%s: power is %g, util %g", value, v[Power], v[Util])
		}
	}
	if rows := parse(t, "DCGM_FI_DEV_GPU_UTIL{gpu=\"0\"} 106\nDCGM_FI_PROF_DRAM_ACTIVE{gpu=\"0\"} 1.000012\n"); rows[0].Values.Has(Util) || rows[0].Values[DRAM] != 1 {
		t.Errorf("rows are %+v", rows)
	}
	if rows := parse(t, "DCGM_FI_DEV_GPU_UTIL{gpu=\"0\"} 3\nDCGM_FI_DEV_GPU_UTIL{gpu=\"0\"} 4\n"); rows[0].Values.Has(Util) {
		t.Errorf("two values of one counter: %g is believed", rows[0].Values[Util])
	}
}

func TestMalformedExpositions(t *testing.T) {
	many := strings.Builder{}
	for i := range mostRows + 1 {
		many.WriteString("DCGM_FI_DEV_GPU_UTIL{gpu=\"0\",GPU_I_ID=\"" + strings.Repeat("1", i+1) + "\"} 1\n")
	}
	for text, want := range map[string]string{
		"":                                  "no GPU counter",
		"<html>\n<body>Sign in</html>":      "line 1 is no metric",
		"<!DOCTYPE html>\n":                 "line 1 is no metric",
		"{\"error\": \"no\"}\n":             "no GPU counter",
		"node_load1 3\n":                    "no GPU counter",
		"DCGM_FI_DEV_GPU_UTIL{gpu=\"0\"} 4": "line 1 is cut off",
		"DCGM_FI_DEV_GPU_UTIL{gpu=\"0\"} 4\nDCGM_FI_DEV_GPU_UTIL{gp": "line 2 is cut off",
		"DCGM_FI_DEV_GPU_UTIL{gpu=\"0\"} four\n":                     "is no number",
		"DCGM_FI_DEV_GPU_UTIL{gpu=\"0\"}\n":                          "is no number",
		"DCGM_FI_DEV_GPU_UTIL{gpu=\"0\n":                             "has no end",
		"DCGM_FI_DEV_GPU_UTIL{gpu=\"zero\"} 4\n":                     "is no index of a GPU",
		"DCGM_FI_DEV_GPU_UTIL{gpu=\"-1\"} 4\n":                       "is no index of a GPU",
		"DCGM_FI_DEV_GPU_UTIL{gpu=\"1000000000\"} 4\n":               "is no index of a GPU",
		"DCGM_FI_DEV_GPU_UTIL{gpu=0} 4\n":                            "is not quoted",
		"DCGM_FI_DEV_GPU_UTIL{gpu=\"0\" device=\"x\"} 4\n":           "labels are malformed",
		"DCGM_FI_DEV_GPU_UTIL{=\"0\"} 4\n":                           "a label is malformed",
		"DCGM_FI_DEV_GPU_UTIL{gpu=\"\\x\"} 4\n":                      "unknown escape",
		"DCGM_FI_DEV_GPU_UTIL{gpu=\"0\"} 4 soon\n":                   "is no time",
		"DCGM_FI_DEV_GPU_UTIL{gpu=\"0\"} 4 5 6\n":                    "after the value",
		many.String(): "more than 1024 GPUs",
	} {
		rows, _, err := NewParser(DefaultTable()).Parse([]byte(text))
		if err == nil || !strings.Contains(err.Error(), want) || rows != nil {
			t.Errorf("%.80q: %v, want an error with %q", text, err, want)
		}
	}
}

// One odd line, of a counter or of something else, does not cost the other GPUs of the node.
func TestOddLinesAreLeftOut(t *testing.T) {
	good := "DCGM_FI_DEV_GPU_UTIL{gpu=\"0\"} 4\nDCGM_FI_DEV_GPU_UTIL{gpu=\"1\"} 5\n"
	want, _, err := NewParser(DefaultTable()).Parse([]byte(good))
	if err != nil || len(want) != 2 {
		t.Fatal(want, err)
	}
	for _, odd := range []string{"DCGM_FI_DEV_GPU_UTIL{gpu=\"MIG-1\"} 4\n", "DCGM_FI_DEV_GPU_UTIL{gpu=\"2\",pod=\"\\x\"} 4\n", "DCGM_FI_DEV_GPU_UTIL{gpu=\"2\"} many\n",
		"<warning>\n", "DCGM_FI_DEV_GPU_UTIL{gpu=\"2\"} 4 soon\n"} {
		for _, text := range []string{odd + good, good + odd} {
			if got, _, err := NewParser(DefaultTable()).Parse([]byte(text)); err != nil || !slices.EqualFunc(got, want, func(a, b Row) bool { return fmt.Sprint(a) == fmt.Sprint(b) }) {
				t.Errorf("%q: %+v, %v; want %+v", text, got, err, want)
			}
		}
	}
}

// slow parses with Prometheus' own parser; false = it refuses the text, or has parts that no exporter of GPUs has.
func slow(text []byte, p *Parser) (rows []Row, ok bool) {
	reader := expfmt.NewTextParser(model.UTF8Validation)
	families, err := reader.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return nil, false
	}
	var g gather
	for name, f := range families {
		e := p.entries[name]
		if e == nil {
			continue
		}
		if f.Help != nil && e.unit == percentOrRatio {
			p.help(&g, []byte("# HELP "+name+" "+f.GetHelp()))
		}
		for _, m := range f.Metric {
			x := sample{entry: e, index: -1}
			switch f.GetType() {
			case dto.MetricType_GAUGE:
				x.value = m.Gauge.GetValue()
			case dto.MetricType_COUNTER:
				x.value = m.Counter.GetValue()
			case dto.MetricType_UNTYPED:
				x.value = m.Untyped.GetValue()
			default:
				return nil, false
			}
			for _, l := range m.Label {
				switch value := []byte(l.GetValue()); l.GetName() {
				case "gpu", "minor_number":
					if x.index, err = index(value); err != nil {
						return nil, false
					}
				case "GPU_I_ID":
					x.instance = value
				case "modelName":
					x.model = value
				case "hpc_job":
					x.job = value
				}
			}
			if x.index >= 0 && g.add(&x) != nil {
				return nil, false
			}
		}
	}
	return g.finish(), true
}

// same compares rows. The first of several models or jobs of a GPU depends on the order of families.
func same(a, b []Row) bool {
	return slices.EqualFunc(a, b, func(x, y Row) bool {
		for m := range x.Values {
			if v, w := x.Values[m], y.Values[m]; v != w && !(math.IsNaN(v) && math.IsNaN(w)) {
				return false
			}
		}
		return x.Index == y.Index && x.Instance == y.Instance && x.Shared == y.Shared
	})
}

// Where Prometheus' own parser accepts a text, ours reads the same rows from it. It never panics on others.
func FuzzParse(f *testing.F) {
	for _, v := range []gputest.Version{gputest.V3, gputest.V46, gputest.V49} {
		d := gputest.Device{Index: 2, Profile: "1g.10gb", ID: "7", Util: 0.5, Jobs: []string{"12", "13"}}
		var few []string // the fuzzer shortens texts one letter at a time
		for line := range strings.Lines(string((&gputest.Node{Version: v, Host: "a.b", Devices: []gputest.Device{d, devices()[0]}}).Text())) {
			if strings.Contains(line, "GPU_UTIL") || strings.Contains(line, "FB_USED{") {
				few = append(few, line)
			}
		}
		f.Add([]byte(strings.Join(few, "")))
	}
	for _, text := range []string{
		"DCGM_FI_DEV_GPU_UTIL{gpu=\"0\",x=\"a\\\\b\\\"c\\nd\",} 4 123\n", "  DCGM_FI_DEV_GPU_UTIL\t{ gpu = \"0\" , } \t4e1\n", "DCGM_FI_DEV_GPU_UTIL 4\n", "<html>\n",
		"# HELP DCGM_FI_DEV_GPU_UTIL_RATIO in %\nDCGM_FI_DEV_GPU_UTIL_RATIO{gpu=\"3\"} 1\n", "{\"DCGM_FI_DEV_GPU_UTIL\",gpu=\"0\"} 3\nDCGM_FI_DEV_GPU_UTIL{gpu=\"0\"} 0x10\n",
		"DCGM_FI_DEV_POWER_USAGE{gpu=\"0\"} 123456789012345.6\n#\n\n# EOF\n",
	} {
		f.Add([]byte(text))
	}
	p := NewParser(DefaultTable())
	f.Fuzz(func(t *testing.T, text []byte) {
		rows, _, err := p.Parse(text)
		for i := range rows {
			for m, v := range rows[i].Values {
				if !math.IsNaN(v) && !(v >= 0 && v <= mosts[m]) {
					t.Fatalf("%s is %g", meaningNames[m], v)
				}
			}
		}
		want, ok := slow(text, p)
		switch {
		case !ok || bytes.Contains(text, []byte("{\"")) || bytes.Contains(text, []byte("{ \"")) || bytes.Contains(text, []byte("{\t\"")):
			return
		case err != nil && len(want) > 0:
			t.Fatalf("Prometheus reads %+v, we refuse: %v", want, err)
		case err == nil && !same(rows, want):
			t.Fatalf("we read\n%+v, Prometheus\n%+v", rows, want)
		}
	})
}

func TestTableWith(t *testing.T) {
	table, err := DefaultTable().With(map[string][]Counter{"util": {{"nvidia_gpu_duty_cycle", "percent"}}})
	if err != nil {
		t.Fatal(err)
	}
	rows, _, err := NewParser(table).Parse([]byte("nvidia_gpu_duty_cycle{minor_number=\"3\",name=\"x\"} 40\n"))
	if err != nil || rows[0].Index != 3 || rows[0].Values[Util] != 0.4 {
		t.Errorf("rows are %+v, %v", rows, err)
	}
	for want, wrong := range map[string]map[string][]Counter{
		"is no meaning of a counter": {"speed": nil},
		"cannot be a counter's name": {"util": {{"a{b=\"c\"}", "percent"}}},
		"cannot be in \"MiB\"":       {"util": {{"a", "MiB"}}},
		"stands under power already": {"energy": {{"DCGM_FI_DEV_POWER_USAGE", "J"}}},
		"stands under util already":  {"util": {{"a", "ratio"}, {"a", "percent"}}},
	} {
		if _, err := DefaultTable().With(wrong); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", wrong, err, want)
		}
	}
}
