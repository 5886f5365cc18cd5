package settings

import (
	"strings"
	"testing"
)

func TestDatabasesAreReadWithTheirPublicURLs(t *testing.T) {
	t.Parallel()
	config, err := LoadConfig("", environment(map[string]string{
		"DATABASE_URLS": "https://App.example.com=postgres://owner:hunter2@db1/palimpsest?sslmode=require\n\thttp://b.example.com:8080/=postgres://owner:hunter2@db2/palimpsest",
	}))
	if err != nil {
		t.Fatal(err)
	}
	each := config.Each()
	if len(each) != 2 {
		t.Fatalf("%d databases", len(each))
	}
	a, b := each[0], each[1]
	if a.Storage.Host != "app.example.com" || a.Serving.PublicURL != "https://App.example.com" || a.Storage.DatabaseURL != "postgres://owner:hunter2@db1/palimpsest?sslmode=require" {
		t.Errorf("the first: %+v", a)
	}
	if b.Storage.Host != "b.example.com:8080" || b.Storage.DatabaseURL != "postgres://owner:hunter2@db2/palimpsest" || a.WaitingDir() == b.WaitingDir() || a.Storage.DataDir != b.Storage.DataDir {
		t.Errorf("the second: %+v", b)
	}
	for _, test := range []struct{ public, host, want string }{
		{"https://a.example", "A.example:443", "a.example"}, {"https://a.example", "a.example:80", "a.example:80"},
		{"http://a.example", "a.example:80", "a.example"}, {"HTTP://a.example", "a.example:443", "a.example:443"},
	} {
		if got := HostOf(test.public, test.host); got != test.want {
			t.Errorf("the host of %s at %s is %s, want %s", test.host, test.public, got, test.want)
		}
	}
	if one := (Config{Storage: Storage{DataDir: "data"}}); len(one.Each()) != 1 || one.WaitingDir() != "data" || one.About("Schema") != "Schema" {
		t.Errorf("one database: %+v", one.Each())
	}
}

func TestWrongDatabasesAreNamedWithoutTheirPasswords(t *testing.T) {
	t.Parallel()
	const good = "https://a.example.com=postgres://owner:hunter2@db1/palimpsest "
	for name, test := range map[string]struct {
		value, says string
		beside      string // another setting
	}{
		"no public URL":         {value: good + "postgres://owner:hunter2@db2/palimpsest", says: "entry 2: the public URL must"},
		"the other way around":  {value: "postgres://owner:hunter2@db1/a=https://a.example.com", says: "entry 1: the public URL must"},
		"a path":                {value: "https://a.example.com/proxy=postgres://owner:hunter2@db1/a", says: "entry 1: the public URL must"},
		"a password in it":      {value: "https://ann:hunter2@a.example.com=postgres://owner@db1/a", says: "entry 1: the public URL must"},
		"no database URL":       {value: good + "https://b.example.com", says: "entry 2: the database URL must"},
		"no PostgreSQL":         {value: good + "https://b.example.com=mysql://owner:hunter2@db2/b", says: "entry 2: the database URL must"},
		"a port of letters":     {value: good + "https://b.example.com=postgres://owner:hunter2@db2:x/b", says: "entry 2: the database URL must"},
		"equal hosts":           {value: good + "https://A.example.com:443=postgres://owner:hunter2@db2/b", says: "entries 1 and 2 have the same host a.example.com"},
		"equal databases":       {value: good + "https://b.example.com=postgresql://other:hunter3@db1:5432/palimpsest?sslmode=disable", says: "entries 1 and 2 name the same database"},
		"beside a database URL": {value: good, beside: "DATABASE_URL", says: "DATABASE_URL: is set beside DATABASE_URLS"},
		"beside an app login":   {value: good, beside: "DATABASE_APP_URL", says: "DATABASE_APP_URL: is set beside DATABASE_URLS"},
		"beside a worker login": {value: good, beside: "DATABASE_WORKER_URL", says: "DATABASE_WORKER_URL: is set beside DATABASE_URLS"},
		"beside a replica":      {value: good, beside: "DATABASE_READ_URL", says: "DATABASE_READ_URL: is set beside DATABASE_URLS"},
		"beside a public URL":   {value: good, beside: "PALIMPSEST_PUBLIC_URL", says: "PALIMPSEST_PUBLIC_URL: is set beside DATABASE_URLS"},
	} {
		settings := map[string]string{"DATABASE_URLS": test.value}
		if test.beside == "PALIMPSEST_PUBLIC_URL" {
			settings[test.beside] = "https://c.example.com"
		} else if test.beside != "" {
			settings[test.beside] = "postgres://owner:hunter2@db3/c"
		}
		_, err := LoadConfig("", environment(settings))
		if err == nil || !strings.Contains(err.Error(), test.says) || !strings.Contains(err.Error(), "DATABASE_URLS") {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if strings.Contains(err.Error(), "hunter") {
			t.Errorf("%s: the error shows a password: %v", name, err)
		}
	}
}
