package redaction_test

import (
	"flag"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/nyaruka/phonenumbers"

	"palimpsest/tenants"
	"palimpsest/tenants/redaction"
)

var update = flag.Bool("update", false, "write plans.txt from libphonenumber")

// The plans are made from the library's, which is updated every few weeks: raise its version and run
// this test with -update.
func TestPlansAreThoseOfTheLibrary(t *testing.T) {
	t.Parallel()
	all, err := phonenumbers.MetadataCollection()
	if err != nil {
		t.Fatal(err)
	}
	forms := map[string][]string{}
	for _, country := range all.GetMetadata() {
		code := strconv.Itoa(int(country.GetCountryCode()))
		for _, kind := range []*phonenumbers.PhoneNumberDesc{
			country.GetFixedLine(), country.GetMobile(), country.GetTollFree(), country.GetPremiumRate(), country.GetSharedCost(),
			country.GetPersonalNumber(), country.GetVoip(), country.GetPager(), country.GetUan(), country.GetVoicemail(),
		} {
			if form := kind.GetNationalNumberPattern(); form != "" && form != "NA" && !slices.Contains(forms[code], form) {
				forms[code] = append(forms[code], form)
			}
		}
	}
	var want strings.Builder
	for _, code := range slices.Sorted(maps.Keys(forms)) {
		want.WriteString(code + " " + strings.Join(forms[code], "|") + "\n")
	}
	if *update {
		if err := os.WriteFile("plans.txt", []byte(want.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile("plans.txt")
	if err != nil || string(got) != want.String() {
		t.Errorf("plans.txt is not what the library has: run this test with -update (%v)", err)
	}
}

// What the library gives as an example of any country's numbers is found, in three ways to write it.
func TestNumbersOfEveryCountryAreFound(t *testing.T) {
	t.Parallel()
	phones := redaction.New(tenants.Redaction{Kinds: []tenants.RedactionKind{tenants.RedactPhones}}, []byte("key"))
	regions := phonenumbers.GetSupportedRegions()
	for region := range regions {
		number := phonenumbers.GetExampleNumber(region)
		international := phonenumbers.Format(number, phonenumbers.INTERNATIONAL)
		want := phones.Text(phonenumbers.Format(number, phonenumbers.E164))
		if plainly(want) != "[phone]" || phones.Text(international) != want || phones.Text("00"+international[1:]) != want {
			t.Errorf("%s: %s becomes %s, its E.164 %s", region, international, phones.Text(international), want)
		}
	}
	if len(regions) < 200 {
		t.Errorf("the library knows %d regions", len(regions))
	}
}
