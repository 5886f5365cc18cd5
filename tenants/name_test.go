package tenants_test

import (
	"errors"
	"strings"
	"testing"

	"palimpsest/tenants"
)

func TestNameIsOneLine(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"laptop": "laptop", " ci agents \n": "ci agents", "Büro 🧑‍💻": "Büro 🧑‍💻", "日本": "日本", strings.Repeat("é", 20): strings.Repeat("é", 20),
		"": "", " \n ": "", strings.Repeat("é", 21): "", "a\nb": "", "a\rb": "", "a\x00b": "", "a\tb": "", "a\x1b[31mb": "", "a\u2028b": "", "a\u2029b": "", "a\u0085b": "", "a\u202eb": "", "a\xffb": "",
	} {
		got, err := tenants.CheckName("name", name, 20)
		invalid, is := errors.AsType[tenants.Invalid](err)
		if got != want || (want == "") != is || is && invalid.Field != "name" {
			t.Errorf("%q: %q, %v", name, got, err)
		}
	}
}

// Addresses that no mail reaches, or that two readers take for two people, are refused.
func TestAddressHasOneAtAndADomain(t *testing.T) {
	t.Parallel()
	for email, want := range map[string]string{
		" Ada@Example.COM ": "ada@example.com", "ada+x@sub.example.co.uk": "ada+x@sub.example.co.uk", "ada@bücher.example": "ada@bücher.example", "ada@xn--bcher-kva.xn--p1ai": "ada@xn--bcher-kva.xn--p1ai",
		"": "", "ada": "", "ada@": "", "@example.com": "", "ada@localhost": "", "a.da@localhost": "", "t@[127.0.0.1]": "", "t@[IPv6:::1]": "", "t@127.0.0.1": "", "t@10.1": "", "t@example.com.": "",
		"ada@evil.com@example.com": "", `"ada@evil.com"@example.com`: "", "ada@.com": "", "ada@example..com": "", "ada@exa mple.com": "", "ada@example.com\nbcc: x@example.com": "", "Ada <ada@example.com>": "",
		strings.Repeat("a", 250) + "@example.com": "",
	} {
		got, err := tenants.CheckEmail(email)
		invalid, is := errors.AsType[tenants.Invalid](err)
		if got != want || (want == "") != is || is && invalid.Field != "email" {
			t.Errorf("%q: %q, %v", email, got, err)
		}
	}
}
