package cluster

import "fmt"

// Identity identifies a Slurm cluster.
type Identity struct {
	Name string `json:"name"` // ClusterName of slurm.conf
	// ID is the number that slurmctld gave itself at its first start; 0 = unknown.
	ID int64 `json:"id,omitempty"`
}

// Is tells whether both can be the same cluster: names are equal, and so are the numbers if both
// are known.
func (i Identity) Is(other Identity) bool {
	return i.Name == other.Name && (i.ID == other.ID || i.ID == 0 || other.ID == 0)
}

func (i Identity) String() string {
	if i.ID == 0 {
		return i.Name
	}
	return fmt.Sprintf("%s (cluster id %d)", i.Name, i.ID)
}
