package worth

import "flag"

// A property that fails must fail again: the same seed every time, unless
// -rapid.seed says otherwise.
func init() { _ = flag.Set("rapid.seed", "1") }
