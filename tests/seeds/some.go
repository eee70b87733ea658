package seeds

// Some gives how many cases of a slow test are run: all of them if Full, else few.
func Some(few, all int) int {
	if Full() {
		return all
	}
	return few
}
