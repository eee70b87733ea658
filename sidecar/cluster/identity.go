package cluster

import "fmt"

// Identity tells clusters apart.
type Identity struct {
	Name string `json:"name"` // ClusterName of slurm.conf
	// ID is the number that slurmctld gave itself when it first started; 0 = not told.
	ID int64 `json:"id,omitempty"`
}

// Is tells whether two can be the same cluster: of the same name, and of the same number where both tell it.
func (i Identity) Is(other Identity) bool {
	return i.Name == other.Name && (i.ID == other.ID || i.ID == 0 || other.ID == 0)
}

func (i Identity) String() string {
	if i.ID == 0 {
		return i.Name
	}
	return fmt.Sprintf("%s (cluster id %d)", i.Name, i.ID)
}
