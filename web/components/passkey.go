package components

// PasskeyModel is a form that a passkey answers: static/js/passkeys.js has the browser
// ask for it when the button is pressed, and sends what it says as the field answer.
type PasskeyModel struct {
	Create     bool   // makes a passkey; else one is used
	Action     string // path that takes the answer
	Options    string // what the browser is asked, as JSON; empty: to be fetched
	OptionsURL string // path that tells it when the button is pressed
	Next       string // where to go then
	Button     string
	Primary    bool
	Origin     string // where passkeys are used
	Instead    string // a sentence: what to do where there are no passkeys
}

// kind is what the script does.
func (p PasskeyModel) kind() string {
	if p.Create {
		return "create"
	}
	return "get"
}
