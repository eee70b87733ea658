package gpu

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
)

// Meaning is what a counter measures.
type Meaning int

// The meanings, in the unit in which Values has them.
const (
	Util     Meaning = iota // part of the time in which a kernel ran, 0 to 1
	Engine                  // part of the time in which the graphics or compute engine was busy, 0 to 1
	SM                      // mean activity of the SMs, 0 to 1
	Tensor                  // activity of the tensor pipes, 0 to 1
	DRAM                    // activity of the memory's interface, 0 to 1
	Power                   // watts
	Energy                  // joules since the driver started
	Used                    // memory in use, bytes
	Free                    // free memory, bytes
	Reserved                // memory reserved by the driver, bytes
	Capacity                // all memory, bytes
	Clock                   // of the SMs, hertz
	PCIeRX                  // bytes read over PCIe per second
	meanings
)

// meaningNames are the meanings' names in the configuration.
var meaningNames = [meanings]string{"util", "engine", "sm", "tensor", "dram", "power", "energy", "memory_used", "memory_free",
	"memory_reserved", "memory_capacity", "clock", "pcie_rx"}

// mosts are the largest credible values. Everything above, below 0 or not a number counts as missing: among it the
// placeholders for "no value" that old exporters print.
var mosts = [meanings]float64{1, 1, 1, 1, 1, 10e3, 1e12, 1 << 42, 1 << 42, 1 << 42, 1 << 42, 1e10, 1e12}

// Values are the counters of one GPU by meaning; NaN = missing.
type Values [meanings]float64

var missing = func() (v Values) {
	for m := range v {
		v[m] = math.NaN()
	}
	return v
}()

// Has tells whether the value is known.
func (v *Values) Has(m Meaning) bool { return !math.IsNaN(v[m]) }

// Memory gives all memory of the GPU in bytes; 0 = unknown. Exporters before 4.9 report only its parts.
func (v *Values) Memory() int64 {
	switch {
	case v.Has(Capacity):
		return int64(v[Capacity])
	case v.Has(Used) && v.Has(Free):
		all := v[Used] + v[Free]
		if v.Has(Reserved) {
			all += v[Reserved]
		}
		return int64(all)
	}
	return 0
}

// Unit is the unit of a counter.
type Unit string

// percentOrRatio is the unit of a counter whose name has had both scales, of exporter 4.6 and 4.9. The scale is found in
// each node's exposition: see scale.
const percentOrRatio Unit = "percent or ratio"

// units gives the factor from each unit to the unit in which Values has it.
var units = map[Unit]float64{"ratio": 1, "percent": 0.01, percentOrRatio: 1, "W": 1, "mW": 1e-3, "J": 1, "mJ": 1e-3, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20,
	"Hz": 1, "MHz": 1e6, "B/s": 1}

// fitting lists the units that a meaning can have.
func fitting(m Meaning) []Unit {
	switch m {
	case Power:
		return []Unit{"W", "mW"}
	case Energy:
		return []Unit{"J", "mJ"}
	case Used, Free, Reserved, Capacity:
		return []Unit{"B", "KiB", "MiB"}
	case Clock:
		return []Unit{"Hz", "MHz"}
	case PCIeRX:
		return []Unit{"B/s"}
	}
	return []Unit{"ratio", "percent", percentOrRatio}
}

// Counter is the name of a counter in expositions, and its unit.
type Counter struct {
	Name string `yaml:"name" json:"name"`
	Unit Unit   `yaml:"unit" json:"unit"`
}

// Table lists the counters of each meaning. Where a GPU has several, the first of the list counts.
type Table [meanings][]Counter

// DefaultTable has the names of dcgm-exporter 3.x to 4.9 (DCGM 3 to 4.7). 4.9 renamed 23 counters and changed the units
// of 11. Of those, DCGM_FI_DEV_GPU_UTIL_RATIO had been a name for the percentage in 4.6.
func DefaultTable() Table {
	return Table{
		Util:     {{"DCGM_FI_DEV_GPU_UTIL", "percent"}, {"DCGM_FI_DEV_GPU_UTIL_RATIO", percentOrRatio}},
		Engine:   {{"DCGM_FI_PROF_GR_ENGINE_ACTIVE", "ratio"}, {"DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO", "ratio"}},
		SM:       {{"DCGM_FI_PROF_SM_ACTIVE", "ratio"}, {"DCGM_FI_PROF_SM_UTIL_RATIO", "ratio"}},
		Tensor:   {{"DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "ratio"}, {"DCGM_FI_PROF_TENSOR_UTIL_RATIO", "ratio"}},
		DRAM:     {{"DCGM_FI_PROF_DRAM_ACTIVE", "ratio"}, {"DCGM_FI_PROF_DRAM_UTIL_RATIO", "ratio"}},
		Power:    {{"DCGM_FI_DEV_POWER_USAGE", "W"}, {"DCGM_FI_DEV_BOARD_POWER_WATTS", "W"}},
		Energy:   {{"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "mJ"}, {"DCGM_FI_DEV_GPU_ENERGY_JOULES_TOTAL", "J"}},
		Used:     {{"DCGM_FI_DEV_FB_USED", "MiB"}, {"DCGM_FI_DEV_FB_USED_BYTES", "B"}},
		Free:     {{"DCGM_FI_DEV_FB_FREE", "MiB"}, {"DCGM_FI_DEV_FB_FREE_BYTES", "B"}},
		Reserved: {{"DCGM_FI_DEV_FB_RESERVED", "MiB"}},
		Capacity: {{"DCGM_FI_DEV_FB_CAPACITY_BYTES", "B"}, {"DCGM_FI_DEV_FB_TOTAL", "MiB"}},
		Clock:    {{"DCGM_FI_DEV_SM_CLOCK", "MHz"}, {"DCGM_FI_DEV_SM_CLOCK_HERTZ", "Hz"}},
		PCIeRX:   {{"DCGM_FI_PROF_PCIE_RX_BYTES", "B/s"}},
	}
}

var counterName = regexp.MustCompile(`^[a-zA-Z_:][a-zA-Z0-9_:]*$`)

// With gives the table with other counters for some meanings, by the meanings' names. Errors say what is wrong and what
// could be written instead.
func (t Table) With(counters map[string][]Counter) (Table, error) {
	for _, name := range slices.Sorted(maps.Keys(counters)) {
		m := Meaning(slices.Index(meaningNames[:], name))
		if m < 0 {
			return t, fmt.Errorf("%q is no meaning of a counter; write one of %s", name, strings.Join(meaningNames[:], ", "))
		}
		for _, c := range counters[name] {
			if !counterName.MatchString(c.Name) {
				return t, fmt.Errorf("%s: %q cannot be a counter's name; write it as in the exposition, for instance %s", name, c.Name, DefaultTable()[m][0].Name)
			}
			if fit := fitting(m); !slices.Contains(fit, c.Unit) {
				return t, fmt.Errorf("%s: %s cannot be in %q; write unit: %s", name, c.Name, c.Unit, strings.Trim(fmt.Sprintf("%q", fit), "[]"))
			}
		}
		t[m] = counters[name]
	}
	seen := map[string]string{}
	for m, list := range t {
		for _, c := range list {
			if other, ok := seen[c.Name]; ok {
				return t, fmt.Errorf("%s: %s stands under %s already; keep one", meaningNames[m], c.Name, other)
			}
			seen[c.Name] = meaningNames[m]
		}
	}
	return t, nil
}
