package sql_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

// In which schema a journal is the connection says (database.schema): no text names one.
func TestNoTextNamesASchema(t *testing.T) {
	names := regexp.MustCompile(`(?im)^[^-']*\bfairlease\.\w+`)
	var files []string
	for _, pattern := range []string{"views/*.sql", "queries/*.sql", "../migrate/migrations/*.sql"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(found), err)
		}
		files = slices.Concat(files, found)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if found := names.Find(text); found != nil {
			t.Errorf("%s: %q", file, found)
		}
	}
}
