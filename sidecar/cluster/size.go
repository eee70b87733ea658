package cluster

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
)

// Size is how many GPUs a job asks for, is leased or holds: a number of devices, and the part of each. 8 whole GPUs are {8, WholeGPU}, half a
// GPU is {1, WholeGPU / 2}, no GPU is the zero Size. Devices is what a size takes of a node; Amount and Over are what it counts in accounts.
//
// In requests and holdings the part is of a device. In leases and accounts (ModelSize) it is of a GPU: At converts it, where a device
// counts as less (Settings.Worths).
type Size struct {
	Devices int      `json:"devices"`
	Part    MicroGPU `json:"part"`
}

// ModelSize is the size of GPUs of one model that a job holds, or held. In records it is what they count in accounts.
type ModelSize struct {
	Model string `json:"model"`
	Size  Size   `json:"count"`
}

// Whole gives the size of n whole GPUs.
func Whole(n int) Size {
	if n == 0 {
		return Size{}
	}
	return Size{n, WholeGPU}
}

// IsWhole reports whether the size is a number of whole GPUs.
func (s Size) IsWhole() bool { return s.Part == WholeGPU || s.Devices == 0 }

// SizeOf gives the size of n GPUs on as few devices as possible: 0.5 is half of one, 1.5 are two of three quarters each. Parts are rounded down.
func SizeOf(n GPUCount) Size {
	if n <= 0 {
		return Size{}
	}
	devices := (MicroGPU(n) + WholeGPU - 1) / WholeGPU
	return Size{int(devices), MicroGPU(n) / devices}
}

// Check fails unless a size that is not zero is possible: on 1 device or more, with parts of a millionth to a whole GPU.
func (s Size) Check() error {
	if s.Devices < 1 || s.Devices > math.MaxInt32 || s.Part < 1 || s.Part > WholeGPU {
		return fmt.Errorf("%d devices with parts of %d millionths are no size: it needs 1 to %d devices, and parts of 1 to %d millionths", s.Devices, s.Part, math.MaxInt32, WholeGPU)
	}
	return nil
}

// And gives the size of what a job has in two places, which may differ in their parts: then the part is the mean, rounded down.
func (s Size) And(o Size) Size {
	if n := s.Devices + o.Devices; s.Devices > 0 && o.Devices > 0 && s.Part != o.Part {
		return Size{n, (s.Amount() + o.Amount()) / MicroGPU(n)}
	}
	return Size{s.Devices + o.Devices, max(s.Part, o.Part)}
}

// At gives what a size of devices counts where each is worth a part of a GPU, rounded down.
func (s Size) At(worth MicroGPU) Size {
	if worth != WholeGPU && s.Devices > 0 {
		s.Part = max(s.Part.At(worth), 1)
	}
	return s
}

// SizeHeld gives the size of holdings together, in devices.
func SizeHeld(holds []Holding) (all Size) {
	for i := range holds {
		all = all.And(holds[i].Size)
	}
	return all
}

// Amount gives the size in GPUs.
func (s Size) Amount() MicroGPU { return MicroGPU(s.Devices) * s.Part }

// Count gives the size in GPUs, for people and other programs.
func (s Size) Count() GPUCount { return GPUCount(s.Amount()) }

// Over gives the GPU time of the size over a span, rounded towards zero. The result saturates if it does not fit.
func (s Size) Over(span Span) GPUTime { return s.Amount().Over(span) }

func (s Size) String() string {
	if s.IsWhole() {
		return strconv.Itoa(s.Devices)
	}
	return fmt.Sprintf("%d × %.6g", s.Devices, float64(s.Part)/float64(WholeGPU))
}

// parts is the JSON of a size that is not whole.
type parts Size

// MarshalJSON writes whole GPUs as their number, and parts as {"devices":1,"part":500000}.
func (s Size) MarshalJSON() ([]byte, error) {
	if s.IsWhole() {
		return strconv.AppendInt(nil, int64(s.Devices), 10), nil
	}
	return json.Marshal(parts(s))
}

// UnmarshalJSON reads what MarshalJSON writes: whole GPUs in any number, since Slurm's records may hold any. An error leaves the size as it was.
func (s *Size) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		return nil
	}
	if n, err := strconv.Atoi(string(text)); err == nil {
		*s = Whole(n)
		return nil
	}
	var p parts
	if err := json.Unmarshal(text, &p); err != nil {
		return fmt.Errorf(`%s is no size: write a number of GPUs, or {"devices":1,"part":500000}: %w`, text, err)
	}
	if err := Size(p).Check(); err != nil {
		return err
	}
	*s = Size(p)
	return nil
}
