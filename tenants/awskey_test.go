package tenants

import "testing"

func TestAWSKeyIsReadInEveryForm(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]AWSKey{
		"AKIAIOSFODNN7EXAMPLE:wJalrXUtnFEMI/K7MDENG+bPx=":              {ID: "AKIAIOSFODNN7EXAMPLE", Secret: "wJalrXUtnFEMI/K7MDENG+bPx="},
		"ASIAIOSFODNN7EXAMPLE:wJalrXUtnFEMI/K7MDENG:IQoJb3JpZ2luX2VjE": {ID: "ASIAIOSFODNN7EXAMPLE", Secret: "wJalrXUtnFEMI/K7MDENG", Token: "IQoJb3JpZ2luX2VjE"},

		"AKIAIOSFODNN7EXAMPLE:a:arn:aws:iam::123456789012:role/team/x":           {ID: "AKIAIOSFODNN7EXAMPLE", Secret: "a", Role: "arn:aws:iam::123456789012:role/team/x"},
		"AKIAIOSFODNN7EXAMPLE:a:arn:aws-us-gov:iam::123456789012:role/x:north:1": {ID: "AKIAIOSFODNN7EXAMPLE", Secret: "a", Role: "arn:aws-us-gov:iam::123456789012:role/x", ExternalID: "north:1"},
	} {
		if got, err := ParseAWSKey(text); err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "AKIAIOSFODNN7EXAMPLE", "AKIAIOSFODNN7EXAMPLE:", "short:secret", "akiaiosfodnn7example:secret", "AKIAIOSFODNN7EXAMPLE:a:", "AKIAIOSFODNN7EXAMPLE:a:b:c", "AKIAIOSFODNN7EXAMPLE:a:arn:aws:iam::123456789012:user/x", "AKIAIOSFODNN7EXAMPLE:a:arn:aws:iam::1:role/x", "AKIAIOSFODNN7EXAMPLE:a:arn:aws:sts::123456789012:assumed-role/x/y"} {
		if _, err := ParseAWSKey(text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

// A region becomes a part of a host's name, so it can't hold anything else.
func TestOnlyWellFormedRegionsAreRegions(t *testing.T) {
	t.Parallel()
	for _, region := range []string{"us-east-1", "ap-southeast-2", "us-gov-west-1", "eu-central-10"} {
		if !IsAWSRegion(region) {
			t.Errorf("%q is refused", region)
		}
	}
	for _, region := range []string{"", "us", "us-east", "us-east-1.evil.example", "us-east-1/", "evil.example#-a-1", "us--1", "US-EAST-1", "us-east-1a", "us-e@st-1", "aaaaaaaaaaaaaaaaaaaaaaaaaaaa-bbbb-1"} {
		if IsAWSRegion(region) {
			t.Errorf("%q is accepted", region)
		}
	}
}

func TestRegionIsReadFromHostsOfAWSOnly(t *testing.T) {
	t.Parallel()
	for base, want := range map[string]string{
		"https://bedrock-runtime.us-east-1.amazonaws.com": "us-east-1", "https://bedrock-runtime-fips.us-gov-west-1.amazonaws.com/": "us-gov-west-1",
		"https://bedrock-runtime.REGION.amazonaws.com": "", "https://bedrock-runtime.us-east-1.amazonaws.com.example.com": "", "https://eu-west-1.example.com": "", "": "",
	} {
		if got := AWSRegionOf(base); got != want {
			t.Errorf("%s: %q, want %q", base, got, want)
		}
	}
}
