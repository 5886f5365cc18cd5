package connect

import (
	"encoding/json"
	"strings"
	"testing"
)

// changed puts entries into a text.
func changed(t *testing.T, f format, text string, entries ...Entry) string {
	t.Helper()
	after, err := put(f, []byte(text), entries)
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return string(after)
}

func TestJSONKeepsCommentsOrderAndFormatting(t *testing.T) {
	t.Parallel()
	url, group := set("http://p", "env", "URL"), set(struct {
		Type string `json:"type"`
		At   string `json:"at"`
	}{"http", "<&>"}, "servers", "palimpsest")
	item := set(map[string]string{"name": "new"}, "models", "name=new")
	for name, test := range map[string]struct {
		before, after string
		entries       []Entry
	}{
		"nothing":         {"", "{\n  \"env\": {\n    \"URL\": \"http://p\"\n  }\n}\n", []Entry{url}},
		"empty object":    {"{}\n", "{\n  \"env\": {\n    \"URL\": \"http://p\"\n  }\n}\n", []Entry{url}},
		"members":         {"{\n    \"z\": 1,\n    \"env\": {\n        \"A\": \"b\"\n    },\n    \"a\": 2\n}", "{\n    \"z\": 1,\n    \"env\": {\n        \"A\": \"b\",\n        \"URL\": \"http://p\"\n    },\n    \"a\": 2\n}", []Entry{url}},
		"replaced":        {"{\"env\": {\"URL\" : \"old\" /* why */, \"B\": 1}}", "{\"env\": {\"URL\" : \"http://p\" /* why */, \"B\": 1}}", []Entry{url}},
		"one line":        {"{\"env\":{\"A\":1}}", "{\"env\":{\"A\":1, \"URL\":\"http://p\"}}", []Entry{url}},
		"comment at end":  {"{\n  \"env\": {\n    \"A\": 1 // one\n    // two\n  }\n}\n", "{\n  \"env\": {\n    \"A\": 1, // one\n    // two\n    \"URL\": \"http://p\"\n  }\n}\n", []Entry{url}},
		"trailing comma":  {"{\n\t\"env\": {\n\t\t\"A\": 1, // one\n\t},\n}\n", "{\n\t\"env\": {\n\t\t\"A\": 1, // one\n\t\t\"URL\": \"http://p\",\n\t},\n}\n", []Entry{url}},
		"only a comment":  {"{\n  // none yet\n}\n", "{\n  // none yet\n  \"env\": {\n    \"URL\": \"http://p\"\n  }\n}\n", []Entry{url}},
		"Windows":         {"{\r\n  \"env\": {}\r\n}\r\n", "{\r\n  \"env\": {\r\n    \"URL\": \"http://p\"\r\n  }\r\n}\r\n", []Entry{url}},
		"byte order mark": {"\ufeff{\"env\": {\"URL\": \"a\"}}", "\ufeff{\"env\": {\"URL\": \"http://p\"}}", []Entry{url}},
		"group":           {"{\n  \"a\": 1\n}\n", "{\n  \"a\": 1,\n  \"servers\": {\n    \"palimpsest\": {\n      \"type\": \"http\",\n      \"at\": \"<&>\"\n    }\n  }\n}\n", []Entry{group}},
		"list":            {"{\n  \"models\": [\n    { \"name\": \"old\" }\n  ]\n}\n", "{\n  \"models\": [\n    { \"name\": \"old\" },\n    {\n      \"name\": \"new\"\n    }\n  ]\n}\n", []Entry{item}},
		"empty list":      {"{\n  \"models\": []\n}\n", "{\n  \"models\": [\n    {\n      \"name\": \"new\"\n    }\n  ]\n}\n", []Entry{item}},
		"item again":      {"{\"models\": [{\"name\": \"new\", \"x\": 1}, {}]}", "{\"models\": [{\n  \"name\": \"new\"\n}, {}]}", []Entry{item}},
		"twice":           {"{\"env\": {\"URL\": \"a\"}, \"env\": {\"URL\": \"b\"}}", "{\"env\": {\"URL\": \"a\"}, \"env\": {\"URL\": \"http://p\"}}", []Entry{url}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			after := changed(t, JSON.format(), test.before, test.entries...)
			if after != test.after {
				t.Errorf("got\n%s\nwant\n%s", after, test.after)
			}
			back, left, err := takeOut(JSON.format(), []byte(after), []byte(test.before), test.entries)
			if err != nil || len(left) > 0 {
				t.Fatalf("take out: %v, %v", left, err)
			}
			was, _ := JSON.format().parse([]byte(strings.TrimPrefix(test.before, byteOrderMark)))
			now, err := JSON.format().parse([]byte(strings.TrimPrefix(string(back), byteOrderMark)))
			if err != nil || !same(was, now) {
				t.Errorf("taken out: %v\n%s", err, back)
			}
			for _, comment := range []string{"// one", "// two", "/* why */", "// none yet"} {
				if strings.Contains(test.before, comment) && !strings.Contains(string(back), comment) {
					t.Errorf("%s is lost:\n%s", comment, back)
				}
			}
			if json.Valid([]byte(test.before)) && !json.Valid([]byte(after)) {
				t.Error("plain JSON became JSON with comments")
			}
		})
	}
}

const codexConfig = `# my settings
model = "gpt-6-sol"   # the new one
model_provider = "openai" # default

[model_providers.other]
name = 'Other'
base_url = "http://other"

[mcp_servers.docs]
command = "npx"
args = [
  "-y", # yes
  "docs",
]

[[hooks]]
name = "a"
`

func TestTOMLKeepsCommentsOrderAndFormatting(t *testing.T) {
	t.Parallel()
	entries := []Entry{
		set("palimpsest", "model_provider"),
		set(struct {
			Name string            `json:"name"`
			Auth map[string]string `json:"auth"`
			Args []string          `json:"args"`
		}{"Palimpsest", map[string]string{"command": `C:\p "x"`}, []string{"key", "show"}}, "model_providers", "palimpsest"),
		set(true, "features", "fast"),
	}
	added := "\n[model_providers.palimpsest]\nname = \"Palimpsest\"\nauth = { command = \"C:\\\\p \\\"x\\\"\" }\nargs = [\"key\", \"show\"]\n\n[features]\nfast = true\n"
	for name, test := range map[string]struct{ before, after string }{
		"nothing":   {"", "model_provider = \"palimpsest\"\n" + added},
		"comments":  {codexConfig, strings.Replace(codexConfig, `"openai"`, `"palimpsest"`, 1) + added},
		"no key":    {"# one\n[a]\nb = 1", "model_provider = \"palimpsest\"\n# one\n[a]\nb = 1\n" + added},
		"other key": {"model = 'x' # m\n\n[a]\nb = 1\n", "model = 'x' # m\nmodel_provider = \"palimpsest\"\n\n[a]\nb = 1\n" + added},
		"there":     {"model_provider = 'x'\n\n[model_providers.palimpsest]\nenv_key = \"K\"\n\n[features]\nslow = true\n", "model_provider = \"palimpsest\"\n\n[features]\nslow = true\nfast = true\n" + strings.TrimSuffix(added, "\n[features]\nfast = true\n")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			after := changed(t, TOML.format(), test.before, entries...)
			if after != test.after {
				t.Errorf("got\n%s\nwant\n%s", after, test.after)
			}
			back, left, err := takeOut(TOML.format(), []byte(after), []byte(test.before), entries)
			if err != nil || len(left) > 0 {
				t.Fatalf("take out: %v, %v", left, err)
			}
			was, _ := TOML.format().parse([]byte(test.before))
			now, err := TOML.format().parse(back)
			if err != nil || !same(was, now) {
				t.Errorf("taken out: %v\n%s", err, back)
			}
			if name == "comments" && string(back) != test.before {
				t.Errorf("taken out:\n%s", back)
			}
		})
	}
}

const continueConfig = `# mine
name: Local  # agent
version: 1.0.0
schema: v1

models:
  # the first
  - name: Other
    provider: ollama
    roles: [chat]

  - name: Second
    provider: x
# behind
rules:
- be brief
`

func TestYAMLKeepsCommentsOrderAndFormatting(t *testing.T) {
	t.Parallel()
	model := set(struct {
		Name string `json:"name"`
		Key  string `json:"apiKey"`
	}{"Claude", "${{ secrets.K }}"}, "models", "name=Claude")
	entries := []Entry{model, set(map[string]any{"name": "palimpsest", "headers": map[string]string{"a": "b"}}, "mcpServers", "name=palimpsest"), set("v2", "edit")}
	item := "  - name: Claude\n    apiKey: ${{ secrets.K }}\n"
	rest := "mcpServers:\n  - headers:\n      a: b\n    name: palimpsest\nedit: v2\n"
	for name, test := range map[string]struct{ before, after string }{
		"nothing":  {"", "models:\n" + item + rest},
		"comments": {continueConfig, strings.Replace(continueConfig, "models:\n", "models:\n"+item, 1) + rest},
		"empty":    {"name: x\nmodels: []\n", "name: x\nmodels:\n" + item + rest},
		"flush":    {"models:\n- name: a\n", "models:\n- name: Claude\n  apiKey: ${{ secrets.K }}\n- name: a\n" + rest},
		"there":    {"models:\n  - name: Claude\n    old: 1\n  - name: b\nedit: v1 # x\nz: 1\n", "models:\n" + item + "  - name: b\nedit: v2\nz: 1\n" + strings.TrimSuffix(rest, "edit: v2\n")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			after := changed(t, YAML.format(), test.before, entries...)
			if after != test.after {
				t.Errorf("got\n%s\nwant\n%s", after, test.after)
			}
			back, left, err := takeOut(YAML.format(), []byte(after), []byte(test.before), entries)
			if err != nil || len(left) > 0 {
				t.Fatalf("take out: %v, %v", left, err)
			}
			was, _ := YAML.format().parse([]byte(test.before))
			now, err := YAML.format().parse(back)
			if err != nil || !same(was, now) {
				t.Errorf("taken out: %v\n%s", err, back)
			}
			if name == "comments" && string(back) != test.before {
				t.Errorf("taken out:\n%s", back)
			}
		})
	}
}

func TestTextThatCannotBeReadOrEditedIsRefused(t *testing.T) {
	t.Parallel()
	deep, item := set("x", "env", "URL"), set(map[string]string{"name": "new"}, "models", "name=new")
	for name, test := range map[string]struct {
		format format
		text   string
		entry  Entry
		says   string
	}{
		"broken JSON":        {JSON.format(), "{\n\"a\": ", deep, "line 2"},
		"a list":             {JSON.format(), "[1]", deep, "no JSON object"},
		"null":               {JSON.format(), "null", deep, "no JSON object"},
		"a text for a group": {JSON.format(), `{"env": "x"}`, deep, "env: is not a group of settings"},
		"a list for a group": {JSON.format(), `{"env": []}`, deep, "env: is a list"},
		"a group for a list": {JSON.format(), `{"models": {}}`, item, "models"},
		"broken TOML":        {TOML.format(), "a = 1\nb = ", deep, "line 2"},
		"inline table":       {TOML.format(), "env = { A = 1 }\n", deep, "cannot be edited safely"},
		"broken YAML":        {YAML.format(), "a: [\n", item, "line"},
		"flow list":          {YAML.format(), "models: [{name: x}]\n", item, "cannot be edited safely"},
		"alias":              {YAML.format(), "a: &l\n  - name: x\nmodels: *l\n", item, "cannot be edited safely"},
		"flow mapping":       {YAML.format(), "{a: 1}\n", item, "cannot be edited safely"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			after, err := put(test.format, []byte(test.text), []Entry{test.entry})
			if err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("%v\n%s", err, after)
			}
		})
	}
}

func TestOwnEntriesAreTakenOutOfAFileThatChanged(t *testing.T) {
	t.Parallel()
	before := "{\n  \"env\": {\n    \"URL\": \"mine\"\n  }\n}\n"
	entries := []Entry{set("http://p", "env", "URL"), set("1", "env", "B"), set("1", "env", "C"), set("x", "new", "deep")}
	after := changed(t, JSON.format(), before, entries...)
	edited := strings.Replace(strings.Replace(after, `"B": "1"`, `"B": "2"`, 1), `"C": "1"`, `"D": "9"`, 1)

	back, left, err := takeOut(JSON.format(), []byte(edited), []byte(before), entries)
	if err != nil || strings.Join(left, " ") != "env.B" {
		t.Fatalf("left %v, %v", left, err)
	}
	if want := "{\n  \"env\": {\n    \"URL\": \"mine\",\n    \"B\": \"2\",\n    \"D\": \"9\"\n  }\n}\n"; string(back) != want {
		t.Errorf("got\n%s\nwant\n%s", back, want)
	}
}

func TestDotenvKeepsOtherLines(t *testing.T) {
	t.Parallel()
	entry := set("plm_1", "PALIMPSEST_KEY")
	before := "# keys\nA=1\nexport PALIMPSEST_KEY='old' \nB=\"x y\""
	after := changed(t, Dotenv.format(), before, entry, set("2", "C"))
	if want := "# keys\nA=1\nPALIMPSEST_KEY=plm_1\nB=\"x y\"\nC=2\n"; after != want {
		t.Errorf("got\n%s", after)
	}
	back, _, err := takeOut(Dotenv.format(), []byte(after), []byte(before), []Entry{entry, set("2", "C")})
	if want := "# keys\nA=1\nPALIMPSEST_KEY=old\nB=\"x y\"\n"; err != nil || string(back) != want {
		t.Errorf("%v\n%s", err, back)
	}
}

// Clients write more into a group of settings than was put in, or renew a part of it.
func TestGroupIsTakenOutWhileItHasTheSameAddresses(t *testing.T) {
	t.Parallel()
	entry := set(map[string]string{"url": "http://p/v1", "at": "1"}, "providers", "anthropic")
	after := changed(t, JSON.format(), "{}", entry)
	for _, test := range []struct {
		old, new string
		left     int
	}{{`"at": "1"`, `"at": "2", "more": {"x": 1}`, 0}, {"http://p/v1", "http://elsewhere", 1}} {
		back, left, err := takeOut(JSON.format(), []byte(strings.Replace(after, test.old, test.new, 1)), []byte("{}"), []Entry{entry})
		if err != nil || len(left) != test.left || strings.Contains(string(back), "anthropic") != (test.left > 0) {
			t.Errorf("%s: left %v, %v\n%s", test.new, left, err, back)
		}
	}
}
