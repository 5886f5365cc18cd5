package tenants

import (
	"net/url"
	"strings"
)

// AWSKey is an access key of an AWS account. The secret of a provider key with AuthSigV4 holds one.
type AWSKey struct {
	ID, Secret string
	Token      string // of a temporary key; "" if it is permanent
	Role       string // ARN of the role that signs in place of the key; "" without one
	ExternalID string // which the role's trust policy may ask for; "" if absent
}

// ParseAWSKey reads an access key in the form ID:SECRET, ID:SECRET:TOKEN, ID:SECRET:ROLE_ARN or
// ID:SECRET:ROLE_ARN:EXTERNAL_ID. The error is an Invalid.
func ParseAWSKey(text string) (AWSKey, error) {
	parts := strings.SplitN(text, ":", 3)
	if len(parts) < 2 || !isAWSKeyID(parts[0]) || parts[1] == "" {
		return AWSKey{}, errAWSKey()
	}
	key := AWSKey{ID: parts[0], Secret: parts[1]}
	if len(parts) == 2 {
		return key, nil
	}
	if !strings.HasPrefix(parts[2], "arn:") {
		key.Token = parts[2]
		if key.Token == "" || strings.Contains(key.Token, ":") {
			return AWSKey{}, errAWSKey()
		}
		return key, nil
	}
	const inARN = 6
	rest := strings.SplitN(parts[2], ":", inARN+1)
	if len(rest) < inARN || rest[2] != "iam" || rest[3] != "" || !isAWSAccount(rest[4]) || !strings.HasPrefix(rest[5], "role/") {
		return AWSKey{}, Invalid{Field: "key", Message: "has a role that is not of the form arn:aws:iam::ACCOUNT:role/NAME"}
	}
	key.Role = strings.Join(rest[:inARN], ":")
	if len(rest) > inARN {
		key.ExternalID = rest[inARN]
	}
	return key, nil
}

func errAWSKey() error {
	return Invalid{Field: "key", Message: "must have the form ACCESS_KEY_ID:SECRET_ACCESS_KEY; a temporary key has :SESSION_TOKEN at its end, and one that assumes a role :ROLE_ARN or :ROLE_ARN:EXTERNAL_ID"}
}

// isAWSAccount reports whether a text is the number of an account of AWS.
func isAWSAccount(text string) bool {
	const digits = 12
	return len(text) == digits && !strings.ContainsFunc(text, func(r rune) bool { return r < '0' || r > '9' })
}

// isAWSKeyID reports whether a text is the id of an access key, such as AKIAIOSFODNN7EXAMPLE.
func isAWSKeyID(text string) bool {
	const shortest, longest = 16, 128
	return len(text) >= shortest && len(text) <= longest && !strings.ContainsFunc(text, func(r rune) bool {
		return (r < 'A' || r > 'Z') && (r < '0' || r > '9')
	})
}

// IsAWSRegion reports whether a text has the form of an AWS region, such as us-east-1. It can't hold a part of
// another host's name.
func IsAWSRegion(text string) bool {
	const longest = 32
	parts := strings.Split(text, "-")
	last := len(parts) - 1
	if last < 2 || len(text) > longest {
		return false
	}
	for i, part := range parts {
		first, final := 'a', 'z'
		if i == last {
			first, final = '0', '9'
		}
		if part == "" || strings.ContainsFunc(part, func(r rune) bool { return r < first || r > final }) {
			return false
		}
	}
	return true
}

// AWSRegionOf returns the region in the name of a host of AWS, such as bedrock-runtime.us-east-1.amazonaws.com; ""
// for other hosts.
func AWSRegionOf(baseURL string) string {
	parsed, err := url.Parse(strings.TrimSpace(baseURL))
	if err != nil {
		return ""
	}
	name, isAWS := strings.CutSuffix(parsed.Hostname(), ".amazonaws.com")
	if !isAWS {
		if name, isAWS = strings.CutSuffix(parsed.Hostname(), ".api.aws"); !isAWS {
			return ""
		}
	}
	if region := name[strings.LastIndexByte(name, '.')+1:]; IsAWSRegion(region) {
		return region
	}
	return ""
}
