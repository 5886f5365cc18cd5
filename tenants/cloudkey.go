package tenants

import (
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"net/url"
	"strings"
)

// Secret is the secret of a provider key, read in the form that its Auth needs.
type Secret struct {
	Stored string   // what the vault seals
	Shown  string   // a part that identifies it and may be shown
	Hidden []string // the parts that must not appear in an answer
}

// ReadSecret reads the secret of a key. The error is an Invalid.
func ReadSecret(auth Auth, text string) (Secret, error) {
	switch auth {
	case AuthSigV4:
		key, err := ParseAWSKey(text)
		return Secret{Stored: text, Shown: key.ID, Hidden: []string{key.Secret, key.Token}}, err
	case AuthGoogle:
		account, err := ParseGoogleAccount(text)
		if err != nil {
			return Secret{}, err
		}
		stored, err := json.Marshal(account) //nolint:gosec // Stored is what gets sealed
		return Secret{Stored: string(stored), Shown: account.KeyID, Hidden: []string{account.PrivateKey}}, err
	case AuthEntra:
		app, err := ParseEntraApp(text)
		return Secret{Stored: text, Shown: app.Client, Hidden: []string{app.Secret}}, err
	case AuthUsual, AuthBearer, AuthXAPIKey, AuthAPIKey, AuthGoogAPIKey:
	}
	return Secret{Stored: text, Shown: text, Hidden: []string{text}}, nil
}

// GoogleAccount is a service account of Google Cloud with one of its keys, as in the file that Google makes for it.
// The secret of a provider key with AuthGoogle holds one.
type GoogleAccount struct {
	Type       string `json:"type"`
	Project    string `json:"project_id"`
	KeyID      string `json:"private_key_id"`
	PrivateKey string `json:"private_key"`
	Email      string `json:"client_email"`
	TokenURL   string `json:"token_uri"`
}

// serviceAccount is the only accepted type of credentials of Google. The others make the machine that uses them
// read files, run programs or ask addresses.
const serviceAccount = "service_account"

// ParseGoogleAccount reads the file of a service account's key. The error is an Invalid.
func ParseGoogleAccount(text string) (GoogleAccount, error) {
	invalid := func(message string) (GoogleAccount, error) {
		return GoogleAccount{}, Invalid{Field: "key", Message: message}
	}
	var account GoogleAccount
	if err := json.Unmarshal([]byte(text), &account); err != nil {
		return invalid("must be the JSON file of a service account's key, whole")
	}
	if account.TokenURL == "" {
		account.TokenURL = "https://oauth2.googleapis.com/token"
	}
	address, err := url.Parse(account.TokenURL)
	switch {
	case account.Type != serviceAccount:
		return invalid(`must have "type": "service_account"; other types of credentials are not accepted`)
	case !isGoogleKey(account.PrivateKey):
		return invalid("has no valid private_key; create another key for the service account and paste its file as it is")
	case !strings.Contains(account.Email, "@") || len(account.KeyID) < 4 || account.Project == "":
		return invalid("has no client_email, private_key_id or project_id; paste the file as it is")
	case err != nil || address.Host == "" || address.User != nil || address.RawQuery != "":
		return invalid("has an invalid token_uri; paste the file as it is")
	}
	return account, nil
}

// isGoogleKey reports whether a text is a private key as Google makes them.
func isGoogleKey(text string) bool {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return false
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	_, isRSA := key.(*rsa.PrivateKey)
	return err == nil && isRSA
}

// EntraApp is an application in Microsoft Entra ID with a client secret. The secret of a provider key with AuthEntra
// holds one.
type EntraApp struct{ Tenant, Client, Secret string }

// ParseEntraApp reads an application in the form TENANT:CLIENT:SECRET. The error is an Invalid.
func ParseEntraApp(text string) (EntraApp, error) {
	parts := strings.SplitN(text, ":", 3)
	if len(parts) != 3 || !isEntraID(parts[0]) || !isEntraID(parts[1]) || parts[2] == "" {
		return EntraApp{}, Invalid{Field: "key", Message: "must have the form TENANT_ID:CLIENT_ID:CLIENT_SECRET, of an application in Microsoft Entra ID"}
	}
	return EntraApp{Tenant: parts[0], Client: parts[1], Secret: parts[2]}, nil
}

// isEntraID reports whether a text can be the id of a tenant or an application. The tenant's becomes a part of a path.
func isEntraID(text string) bool {
	const shortest, longest = 4, 128
	return len(text) >= shortest && len(text) <= longest && !strings.Contains(text, "..") && !strings.ContainsFunc(text, func(r rune) bool {
		return (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '.'
	})
}

// IsGoogleLocation reports whether a text has the form of a location of Google Cloud: a region such as us-east5, or
// one of the locations global, us and eu. It can't hold a part of another host's name.
func IsGoogleLocation(text string) bool {
	if text == "global" || text == "us" || text == "eu" {
		return true
	}
	const longest = 32
	area, place, found := strings.Cut(text, "-")
	name := strings.TrimRight(place, "0123456789")
	isWord := func(word string) bool {
		return word != "" && !strings.ContainsFunc(word, func(r rune) bool { return r < 'a' || r > 'z' })
	}
	return found && len(text) <= longest && isWord(area) && isWord(name) && name != place
}

// GoogleHost returns the host of Google Cloud's models at a location.
func GoogleHost(location string) string {
	switch location {
	case "global":
		return "aiplatform.googleapis.com"
	case "us", "eu":
		return "aiplatform." + location + ".rep.googleapis.com"
	default:
		return location + "-aiplatform.googleapis.com"
	}
}

// GoogleLocationOf returns the location in a base URL of Google Cloud's models, .../locations/LOCATION; "" if absent.
func GoogleLocationOf(baseURL string) string {
	_, after, _ := strings.Cut(baseURL, "/locations/")
	location, _, _ := strings.Cut(strings.TrimRight(after, "/"), "/")
	if !IsGoogleLocation(location) {
		return ""
	}
	return location
}

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
