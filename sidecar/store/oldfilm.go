package store

import (
	"encoding/json"
	"fmt"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Rounds written before schema 9 are texts: JSON, or the difference to their keyframe's.

// texts are a round's snapshot and plan as JSON.
type texts struct{ snapshot, plan []byte }

// develop unpacks a round's blobs to texts. key holds its keyframe's texts, none for a keyframe.
func decode(snapshot, plan blob, key texts) (texts, error) {
	var out texts
	var err error
	if out.snapshot, err = snapshot.text(key.snapshot); err != nil {
		return texts{}, fmt.Errorf("unpacking the snapshot: %w", err)
	}
	if out.plan, err = plan.text(key.plan); err != nil {
		return texts{}, fmt.Errorf("unpacking the plan: %w", err)
	}
	return out, nil
}

// text gives the text; key is the base of the difference, or nil.
func (b blob) text(key []byte) ([]byte, error) {
	if key == nil {
		return b.unpack()
	}
	told, err := b.unzip(2 * b.bytes) // a difference may exceed its text by this much
	if err != nil {
		return nil, err
	}
	return newOriginal(key).apply(told, b.bytes)
}

// read parses the texts.
func (t texts) read() (snap cluster.Snapshot, plan cluster.Plan, err error) {
	if err := json.Unmarshal(t.snapshot, &snap); err != nil {
		return snap, plan, fmt.Errorf("reading the snapshot's JSON: %w", err)
	}
	if err := json.Unmarshal(t.plan, &plan); err != nil {
		return snap, plan, fmt.Errorf("reading the plan's JSON: %w", err)
	}
	return snap, plan, nil
}
