# Sums up the output of go test: each test that failed, with the last lines that it printed itself.
function tell(  i) {
	if (name != "") {
		print name
		for (i = n > 6 ? n - 6 : 0; i < n; i++) print substr(line[i], 1, 300)
	}
	name = ""; n = 0
}
/^ *--- FAIL: / { tell(); name = $0; next }
/^ *--- / || /^(ok|FAIL|PASS|panic:|=== )/ { tell() }
/^(FAIL\t|panic: )/ { print }
name != "" && /_test\.go:[0-9]+: / { line[n++] = $0 }
END { tell() }
