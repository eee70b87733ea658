package forecast

import "flag"

// A property that fails must fail again.
func init() { _ = flag.Set("rapid.seed", "1") }
