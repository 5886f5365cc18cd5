package ledger_test

import (
	"slices"
	"strings"
	"testing"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/ledger"
)

// D3: files that shell commands touch.
func TestShellCommandsTellTheirFiles(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ command, reads, writes, deletes string }{
		{"rm -rf build old.txt", "", "", "build old.txt"},
		{"git rm -q a.go && git rm --cached b.go", "", "", "a.go"},
		{"mv a.go b.go", "", "b.go", "a.go"},
		{"mv a.go b.go sub/", "", "sub/a.go sub/b.go", "a.go b.go"},
		{"git mv a.go sub/a.go", "", "sub/a.go", "a.go"},
		{"cp -r a.go /tmp/b.go", "a.go", "/tmp/b.go", ""},
		{"sed -i 's/a/b/' a.go b.go", "", "a.go b.go", ""},
		{"sed -i '' 's/a/b; rm c/' a.go", "", "a.go", ""},
		{"sed -i.bak -e 's/a/b/' -e 's/c/d/' a.go", "", "a.go", ""},
		{"sed -n '1,20p' a.go", "a.go", "", ""},
		{"perl -pi -e 's/a/b/' a.go", "", "a.go", ""},
		{"cat a.go | grep x > out.txt", "a.go", "out.txt", ""},
		{"head -n 20 a.go; tail -5 b.go", "a.go b.go", "", ""},
		{"go test ./... > log.txt 2>&1", "", "log.txt", ""},
		{"go build 2> errors.txt", "", "", ""},
		{"make &> all.txt", "", "all.txt", ""},
		{"echo x >> notes.md", "", "notes.md", ""},
		{"echo 'rm a.go > b.go'", "", "", ""},
		{"echo \"x > y\" # rm z", "", "", ""},
		{"ls > /dev/null 2>&1", "", "", ""},
		{"sort < in.txt | tee out.txt", "in.txt", "out.txt", ""},
		{"cat > a.go <<'EOF'\nrm b.go\nx > y\nEOF\nrm c.go", "", "a.go", "c.go"},
		{"cat <<-EOF > a.go\n\tx\n\tEOF\ntouch b.go", "", "a.go b.go", ""},
		{"git commit -m \"$(cat <<'EOF'\nIt's > done; rm x (a\nEOF\n)\" && rm y", "", "", "y"},
		{"cd sub && rm a.go && cat ../b.go", "b.go", "", "sub/a.go"},
		{"cd /p/x; cat a.go /q/b.go", "/p/x/a.go /q/b.go", "", ""},
		{"for f in a.go b/*.go; do\n  sed -i 's/x/y/' \"$f\"\ndone", "", "a.go b/*.go", ""},
		{"if ! grep -q x a.go; then rm b.go; fi", "", "", "b.go"},
		{"FOO=1 sudo env BAR=2 timeout 5 rm a.go", "", "", "a.go"},
		{"rm $FILE `ls` $(ls) \"${DIR}/x\"", "", "", ""},
		{"git checkout -- a.go b.go", "", "a.go b.go", ""},
		{"git checkout main", "", "", ""},
		{"git checkout --theirs a.go && git add a.go", "", "a.go", ""},
		{"git -C /p restore a.go", "", "a.go", ""},
		{"gofmt -w a.go ./...", "", "a.go", ""},
		{"gofmt -l a.go", "", "", ""},
		{"npx prettier --check a.ts", "", "", ""},
		{"grep -rn pattern src", "", "", ""},
		{"cat \"a b.txt\" c\\ d.txt", "a|b.txt c|d.txt", "", ""},
		{"diff <(sort a) <(cat b.txt)", "b.txt", "", ""},
		{"x=$((1 > 0)); echo $x", "", "", ""},
		{"cat <<< \"word > file\"", "", "", ""},
		{"echo unclosed 'quote > a", "", "", ""},
	} {
		t.Run(test.command, func(t *testing.T) {
			t.Parallel()
			call := ledger.ParseCall(&conversation.Block{Name: "Bash", Text: object("command", test.command)})
			for _, list := range []struct {
				what string
				got  []string
				want string
			}{{"reads", call.Reads, test.reads}, {"writes", call.Writes, test.writes}, {"deletes", call.Deletes, test.deletes}} {
				want := strings.Fields(list.want)
				for i := range want {
					want[i] = strings.ReplaceAll(want[i], "|", " ")
				}
				if !slices.Equal(list.got, want) {
					t.Errorf("%s %q, want %q", list.what, list.got, want)
				}
			}
		})
	}
}
