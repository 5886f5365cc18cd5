package components

// KeepKeys is the choice that leaves the API keys of somebody who goes as they are.
const KeepKeys = "keep"

// KeyFates are what can become of the API keys of somebody who goes.
func KeyFates() []Option {
	return []Option{{Value: "revoke", Label: "revoke them"}, {Value: KeepKeys, Label: "keep them working"}}
}
