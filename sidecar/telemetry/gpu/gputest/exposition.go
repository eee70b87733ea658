// Package gputest writes expositions as dcgm-exporter does, for tests: the default counters of its versions, with the
// names, units, labels and order of each.
package gputest

import (
	"bytes"
	"fmt"
	"strings"
)

// Version is a version of dcgm-exporter.
type Version int

// The versions that differ in names or units.
const (
	V3  Version = iota // 3.x: old names
	V46                // 4.6: old names, but GPU_UTIL_RATIO, in percent
	V49                // 4.9: new names and units
)

// Device is one GPU, or one MIG instance, with the values that its counters have.
type Device struct {
	Index   int
	Model   string // "" = NVIDIA H100 80GB HBM3
	Profile string // MIG profile, such as 1g.10gb; "" = the whole GPU
	ID      string // MIG GPU instance
	// Ratios from 0 to 1.
	Util, Engine, SM, Tensor, DRAM float64
	Power                          float64 // watts
	Energy                         float64 // joules
	Used, Total                    float64 // bytes of memory; Total 0 = 80 GiB
	Clock                          float64 // hertz
	Jobs                           []string
	NoProf                         bool // without the profiling counters, as on GPUs before Volta
	WithSM                         bool // with SM_ACTIVE, which the default counters do not have
}

// Node is what one exporter publishes.
type Node struct {
	Version Version
	Host    string // label hostname; "" = none
	NoHelp  bool   // without HELP and TYPE
	Devices []Device
}

const reserved = 500 << 20 // bytes of memory that the driver reserves

// family is one counter.
type family struct {
	old, new       string
	help, help49   string
	kind           string
	prof           bool
	value, value49 func(d *Device) string
}

func whole(x float64) string    { return fmt.Sprintf("%.0f", x) }
func fraction(x float64) string { return fmt.Sprintf("%f", x) }

func ratio(of func(d *Device) float64) func(d *Device) string {
	return func(d *Device) string { return fraction(of(d)) }
}

// families are the default counters, in the order of the exporter's file.
var families = []family{
	{old: "DEV_SM_CLOCK", new: "DEV_SM_CLOCK_HERTZ", help: "SM clock frequency (in MHz).", help49: "SM clock frequency in hertz.",
		value: func(d *Device) string { return whole(d.Clock / 1e6) }, value49: func(d *Device) string { return whole(d.Clock) }},
	{old: "DEV_MEM_CLOCK", new: "DEV_MEM_CLOCK_HERTZ", help: "Memory clock frequency (in MHz).", value: func(*Device) string { return "2619" }},
	{old: "DEV_MEMORY_TEMP", new: "DEV_MEMORY_TEMP_CELSIUS", help: "Memory temperature (in C).", value: func(*Device) string { return "41" }},
	{old: "DEV_GPU_TEMP", new: "DEV_GPU_TEMP_CELSIUS", help: "GPU temperature (in C).", value: func(*Device) string { return "33" }},
	{old: "DEV_POWER_USAGE", new: "DEV_BOARD_POWER_WATTS", help: "Power draw (in W).", value: ratio(func(d *Device) float64 { return d.Power })},
	{old: "DEV_TOTAL_ENERGY_CONSUMPTION", new: "DEV_GPU_ENERGY_JOULES_TOTAL", kind: "counter", help: "Total energy consumption since boot (in mJ).",
		value: func(d *Device) string { return whole(d.Energy * 1000) }, value49: func(d *Device) string { return fraction(d.Energy) }},
	{old: "DEV_PCIE_REPLAY_COUNTER", kind: "counter", help: "Total number of PCIe retries.", value: func(*Device) string { return "0" }},
	{old: "DEV_GPU_UTIL", new: "DEV_GPU_UTIL_RATIO", help: "GPU utilization (in %).", help49: "Ratio of time in which a kernel ran.",
		value: func(d *Device) string { return whole(d.Util * 100) }, value49: ratio(func(d *Device) float64 { return d.Util })},
	{old: "DEV_MEM_COPY_UTIL", help: "Memory utilization (in %).", value: func(d *Device) string { return whole(d.DRAM * 100) }},
	{old: "DEV_ENC_UTIL", help: "Encoder utilization (in %).", value: func(*Device) string { return "0" }},
	{old: "DEV_DEC_UTIL", help: "Decoder utilization (in %).", value: func(*Device) string { return "0" }},
	{old: "DEV_XID_ERRORS", new: "DEV_XID_ERROR", help: "Value of the last XID error encountered.", value: func(*Device) string { return "0" }},
	{old: "DEV_FB_FREE", new: "DEV_FB_FREE_BYTES", help: "Framebuffer memory free (in MiB).",
		value: func(d *Device) string { return whole((d.total() - d.Used - reserved) / (1 << 20)) }, value49: func(d *Device) string { return whole(d.total() - d.Used - reserved) }},
	{old: "DEV_FB_USED", new: "DEV_FB_USED_BYTES", help: "Framebuffer memory used (in MiB).",
		value: func(d *Device) string { return whole(d.Used / (1 << 20)) }, value49: func(d *Device) string { return whole(d.Used) }},
	{old: "DEV_FB_RESERVED", new: "DEV_FB_CAPACITY_BYTES", help: "Framebuffer memory reserved (in MiB).",
		value: func(*Device) string { return whole(reserved >> 20) }, value49: func(d *Device) string { return whole(d.total()) }},
	{old: "DEV_UNCORRECTABLE_REMAPPED_ROWS", kind: "counter", help: "Number of remapped rows for uncorrectable errors", value: func(*Device) string { return "0" }},
	{old: "DEV_CORRECTABLE_REMAPPED_ROWS", kind: "counter", help: "Number of remapped rows for correctable errors", value: func(*Device) string { return "0" }},
	{old: "DEV_ROW_REMAP_FAILURE", help: "Whether remapping of rows has failed", value: func(*Device) string { return "0" }},
	{old: "DEV_NVLINK_BANDWIDTH_TOTAL", kind: "counter", help: "Total number of NVLink bandwidth counters for all lanes.", value: func(*Device) string { return "0" }},
	{old: "DEV_VGPU_LICENSE_STATUS", help: "vGPU License status", value: func(*Device) string { return "0" }},
	{old: "PROF_GR_ENGINE_ACTIVE", new: "PROF_GR_ENGINE_UTIL_RATIO", prof: true, help: "Ratio of time the graphics engine is active.", value: ratio(func(d *Device) float64 { return d.Engine })},
	{old: "PROF_SM_ACTIVE", new: "PROF_SM_UTIL_RATIO", prof: true, help: "The ratio of cycles an SM has at least 1 warp assigned.",
		value: func(d *Device) string {
			if !d.WithSM {
				return ""
			}
			return fraction(d.SM)
		}},
	{old: "PROF_PIPE_TENSOR_ACTIVE", new: "PROF_TENSOR_UTIL_RATIO", prof: true, help: "Ratio of cycles the tensor (HMMA) pipe is active.", value: ratio(func(d *Device) float64 { return d.Tensor })},
	{old: "PROF_DRAM_ACTIVE", new: "PROF_DRAM_UTIL_RATIO", prof: true, help: "Ratio of cycles the device memory interface is active sending or receiving data.", value: ratio(func(d *Device) float64 { return d.DRAM })},
	{old: "PROF_PCIE_TX_BYTES", prof: true, help: "The rate of data transmitted over the PCIe bus, in bytes per second.", value: func(d *Device) string { return whole(d.Engine * 1e8) }},
	{old: "PROF_PCIE_RX_BYTES", prof: true, help: "The rate of data received over the PCIe bus, in bytes per second.", value: func(d *Device) string { return whole(d.Engine * 1e9) }},
}

func (d *Device) total() float64 {
	if d.Total > 0 {
		return d.Total
	}
	return 80 << 30
}

// Text gives the exposition.
func (n *Node) Text() []byte {
	var out bytes.Buffer
	labels := make([][]string, len(n.Devices)) // by device and job
	for k := range n.Devices {
		labels[k] = n.labels(&n.Devices[k])
	}
	for i := range families {
		f := &families[i]
		name, help, value := f.old, f.help, f.value
		if n.Version == V46 && f.old == "DEV_GPU_UTIL" || n.Version == V49 && f.new != "" {
			name = f.new
		}
		if n.Version == V49 {
			if f.help49 != "" {
				help = f.help49
			}
			if f.value49 != nil {
				value = f.value49
			}
		}
		name = "DCGM_FI_" + name
		kind := f.kind
		if kind == "" {
			kind = "gauge"
		}
		if !n.NoHelp {
			fmt.Fprintf(&out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
		}
		for k := range n.Devices {
			d := &n.Devices[k]
			text := value(d)
			if text == "" || f.prof && d.NoProf || d.Profile != "" && f.old == "DEV_GPU_UTIL" {
				continue // a blank value is left out
			}
			for _, l := range labels[k] {
				out.WriteString(name)
				out.WriteString(l)
				out.WriteString(text)
				out.WriteByte('\n')
			}
		}
	}
	return out.Bytes()
}

// labels gives the labels of a GPU's samples in the exporter's order, once for each of its jobs.
func (n *Node) labels(d *Device) (all []string) {
	model := d.Model
	if model == "" {
		model = "NVIDIA H100 80GB HBM3"
	}
	out := []string{fmt.Sprintf(`gpu="%d"`, d.Index), fmt.Sprintf(`UUID="GPU-%08x-9a2e-56e3-90e2-52d8551d60%02x"`, 0xb0279e+d.Index, d.Index),
		fmt.Sprintf(`pci_bus_id="00000000:%02X:00.0"`, 0x1b+d.Index), fmt.Sprintf(`device="nvidia%d"`, d.Index), fmt.Sprintf(`modelName="%s"`, model)}
	if d.Profile != "" {
		out = append(out, fmt.Sprintf(`GPU_I_PROFILE="%s"`, d.Profile), fmt.Sprintf(`GPU_I_ID="%s"`, d.ID))
	}
	if n.Host != "" && n.Version == V3 {
		out = append(out, fmt.Sprintf(`Hostname="%s"`, n.Host))
	} else if n.Host != "" {
		out = append(out, fmt.Sprintf(`hostname="%s"`, n.Host))
	}
	driver := "DCGM_FI_DRIVER_VERSION"
	if n.Version == V49 {
		driver = "DCGM_FI_SYSTEM_DRIVER_VERSION"
	}
	out = append(out, driver+`="570.86.15"`)
	for _, job := range d.Jobs {
		all = append(all, fmt.Sprintf(`{%s,hpc_job="%s"} `, strings.Join(out, ","), job))
	}
	if len(d.Jobs) == 0 {
		all = []string{"{" + strings.Join(out, ",") + "} "}
	}
	return all
}
