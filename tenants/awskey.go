package tenants

import (
	"net/url"
	"strings"
)

// AWSKey is an access key of an AWS account. The secret of a provider key with AuthSigV4 holds one.
type AWSKey struct {
	ID, Secret string
	Token      string // of a temporary key; "" if it is permanent
}

// ParseAWSKey reads an access key in the form ID:SECRET or ID:SECRET:TOKEN. The error is an Invalid.
func ParseAWSKey(text string) (AWSKey, error) {
	parts := strings.Split(text, ":")
	if len(parts) != 2 && len(parts) != 3 || !isAWSKeyID(parts[0]) || parts[1] == "" || parts[len(parts)-1] == "" {
		return AWSKey{}, Invalid{Field: "key", Message: "must have the form ACCESS_KEY_ID:SECRET_ACCESS_KEY; a temporary key has :SESSION_TOKEN at its end"}
	}
	key := AWSKey{ID: parts[0], Secret: parts[1]}
	if len(parts) == 3 {
		key.Token = parts[2]
	}
	return key, nil
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
