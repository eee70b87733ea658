package engine

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Checked decides as Decider does, and checks itself: each 64th plan is compared with that of Decide, which keeps nothing between rounds. If
// they differ, which is a fault of the program, the plan of Decide is made instead, with an event, and all that was kept is forgotten. It is
// not safe for concurrent use.
type Checked struct {
	Each    int // plans from one check to the next; 0 = 64. A check costs about two decisions.
	decider Decider
	since   int // plans since the last check
}

// Decide makes the plan for one round.
func (c *Checked) Decide(s cluster.Snapshot) cluster.Plan {
	p := c.decider.Decide(s)
	if c.since++; c.since < cmp.Or(c.Each, 64) {
		return p
	}
	c.since = 0
	anew := Decide(s)
	parts := differences(reflect.ValueOf(&p).Elem(), reflect.ValueOf(&anew).Elem(), "")
	if len(parts) == 0 {
		return p
	}
	c.decider = Decider{}
	anew.Events = append(anew.Events, cluster.Event{Kind: cluster.EventDecisionDiffers, Text: fmt.Sprintf("the plan of round %d from what the engine keeps differs "+
		"from one made from the snapshot alone in: %s; the latter holds, and nothing is kept from before. It is a fault of fairlease: please report it", s.Round, strings.Join(parts, ", "))})
	return anew
}

// differences names the fields of two structs whose JSON differs, those of State one by one.
func differences(a, b reflect.Value, prefix string) (out []string) {
	for i := range a.NumField() {
		name := prefix + a.Type().Field(i).Name
		if x := a.Field(i); x.Type() == reflect.TypeFor[cluster.State]() {
			out = append(out, differences(x, b.Field(i), name+".")...)
		} else if a.Type().Field(i).Tag.Get("json") != "-" && !same(x, b.Field(i)) {
			out = append(out, name)
		}
	}
	return out
}

// same tells whether two values have the same JSON. The elements of lists, which may be of all jobs, are compared one by one.
func same(a, b reflect.Value) bool {
	if a.Kind() != reflect.Slice {
		return bytes.Equal(encoded(a), encoded(b))
	}
	if a.IsNil() != b.IsNil() || a.Len() != b.Len() {
		return false
	}
	for i := range a.Len() {
		if !bytes.Equal(encoded(a.Index(i)), encoded(b.Index(i))) {
			return false
		}
	}
	return true
}

// encoded gives the JSON of a variable, or the error if it has none, such as an infinite number.
func encoded(v reflect.Value) []byte {
	text, err := json.Marshal(v.Addr().Interface())
	if err != nil {
		return []byte(err.Error())
	}
	return text
}
