package pages_test

import (
	"strings"
	"testing"

	"palimpsest/pipeline/fulltest"
	"palimpsest/web/browsertest"
	"palimpsest/web/webtest"
)

// The way of a person with a real browser and its authenticator: a passkey is made,
// logs in alone, logs in after the password, and is removed.
func TestPersonWalksWithAPasskey(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 4)
	product := webtest.Start(t)
	product.SignUp(t, "northbeam")
	tab := browsertest.Start(t).Open(t, browsertest.View{URL: product.Local, Theme: "light"})
	device := tab.Plug()

	tab.Go("/login")
	tab.Type("#field-email", "northbeam@example.com")
	tab.Type("#field-password", webtest.Password)
	tab.Click(`form[action="/login"] button[type="submit"]`)
	tab.Until(browsertest.At("/overview"))
	tab.Go("/account")
	tab.Click(`#passkeys a[href="/account/passkeys"]`)
	tab.Until(browsertest.At("/account/passkeys"))
	tab.CheckLooks("passkeys none")

	// It is made once the password is right.
	tab.Fill("name", "Laptop")
	tab.Fill("password", "not the password")
	tab.Press("Add passkey")
	tab.Until(`document.querySelector('[data-testid="error-password"]') !== null && document.querySelector('#add [name="name"]').value === 'Laptop'`)
	tab.Fill("password", webtest.Password)
	tab.Press("Add passkey")
	tab.Until(browsertest.At("/account/passkeys/new") + ` && document.querySelector('form[data-passkey="create"]') !== null`)
	tab.CheckLooks("passkeys create")
	tab.Press("Create passkey")
	tab.Until(`document.querySelectorAll('[data-testid="codes"] li').length === 10`)
	tab.CheckLooks("passkeys created")
	if kept := device.Passkeys(); len(kept) != 1 || kept[0].RpID != "localhost" || !kept[0].IsResidentCredential || kept[0].UserName != "northbeam@example.com" {
		t.Fatalf("the device keeps %+v", kept)
	}

	// Once more on the same device: it says so itself.
	tab.Go("/account/passkeys")
	tab.Fill("name", "Laptop again")
	tab.Fill("password", webtest.Password)
	tab.Press("Add passkey")
	tab.Until(`document.querySelector('form[data-passkey="create"]') !== null`)
	tab.Press("Create passkey")
	tab.Until(`document.querySelector('[data-say="known"]').hidden === false`)
	tab.Check("passkeys known already")

	// In place of the password.
	logOut(tab)
	tab.CheckLooks("log in with a passkey")
	device.Verify(false)
	tab.Press("Log in with a passkey")
	tab.Until(`document.querySelector('[data-say="ended"]').hidden === false`)
	device.Verify(true)
	tab.Press("Log in with a passkey")
	tab.Until(browsertest.At("/overview"))

	// After it.
	logOut(tab)
	password(tab)
	tab.CheckLooks("log in code with a passkey")
	tab.Press("Use your passkey")
	tab.Until(browsertest.At("/overview"))

	// A count that does not rise tells of a copy.
	logOut(tab)
	device.SetCount(device.Passkeys()[0], 0)
	tab.Press("Log in with a passkey")
	tab.Until(`(document.querySelector('[data-testid="error-form"]') || {textContent: ''}).textContent.includes('copy')`)
	tab.Check("log in with a copied passkey")
}

// The way of a person who has a passkey no more.
func TestPersonRemovesAPasskey(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 4)
	product := webtest.Start(t)
	person := product.SignUp(t, "northbeam")
	tab := browsertest.Start(t).Open(t, browsertest.View{URL: product.Local, Theme: "dark"})
	tab.Plug()
	tab.Go("/login")
	tab.Type("#field-email", person.Email)
	tab.Type("#field-password", webtest.Password)
	tab.Click(`form[action="/login"] button[type="submit"]`)
	tab.Until(browsertest.At("/overview"))
	tab.Go("/account/passkeys")
	tab.Fill("name", "Phone")
	tab.Fill("password", webtest.Password)
	tab.Press("Add passkey")
	tab.Until(`document.querySelector('form[data-passkey="create"]') !== null`)
	tab.Press("Create passkey")
	tab.Until(`document.querySelector('[data-testid="codes"]') !== null`)
	code := strings.TrimSpace(tab.Text(`[data-testid="codes"] li`))

	// Without the device a recovery code logs in, once.
	logOut(tab)
	password(tab)
	tab.Fill("code", code)
	tab.Press("Log in")
	tab.Until(browsertest.At("/overview"))
	tab.Go("/account/passkeys")
	tab.Until(`document.querySelector('[data-testid="left"]').textContent.startsWith('9 ')`)
	tab.CheckLooks("passkeys one")

	tab.Click(`[data-testid="passkeys"] a[href$="/rename"]`)
	tab.Until(`document.querySelector('dialog:modal [name="new_name"]') !== null`)
	tab.Set(`dialog [name="new_name"]`, "Old phone")
	tab.Press("Rename")
	tab.Until(`document.querySelector('dialog[open]') === null && document.querySelector('[data-testid="passkeys"]').textContent.includes('Old phone')`)
	tab.Click(`[data-testid="passkeys"] a[href$="/remove"]`)
	tab.Until(`document.querySelector('dialog:modal [name="remove_password"]') !== null`)
	tab.CheckLooks("passkeys remove")
	tab.Fill("remove_password", webtest.Password)
	tab.Press("Remove")
	tab.Until(browsertest.At("/account/passkeys?done=removed") + ` && document.querySelector('[data-testid="count"]').textContent === '0'`)
	logOut(tab)
	tab.Type("#field-email", person.Email)
	tab.Type("#field-password", webtest.Password)
	tab.Click(`form[action="/login"] button[type="submit"]`)
	tab.Until(browsertest.At("/overview"))
}

// A browser without passkeys says so, and so does one at another address.
func TestBrowserWithoutPasskeysIsToldWhatElseWorks(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 4)
	product := webtest.Start(t)
	product.SignUp(t, "northbeam")
	browser := browsertest.Start(t)

	elsewhere := browser.Open(t, browsertest.View{URL: product.URL})
	elsewhere.Plug()
	elsewhere.Go("/login")
	elsewhere.Press("Log in with a passkey")
	elsewhere.Until(`document.querySelector('[data-say="elsewhere"]').hidden === false`)
	if said := elsewhere.Text(`[data-say="elsewhere"]`); !strings.Contains(said, product.Local) {
		t.Errorf("it says %q", said)
	}

	old := browser.Open(t, browsertest.View{URL: product.Local})
	old.Go("/login")
	old.Run(`delete window.PublicKeyCredential; document.dispatchEvent(new Event('htmx:after:swap'))`)
	old.Until(`document.querySelector('[data-say="missing"]').hidden === false && document.querySelector('form[data-passkey] button').hidden`)
	old.Check("log in without passkeys")
	if said := old.Text(`[data-say="missing"]`); !strings.Contains(said, "password") {
		t.Errorf("it says %q", said)
	}
}

func logOut(tab *browsertest.Tab) {
	tab.Go("/overview")
	tab.Click(`.who button[aria-label="Log out"]`)
	tab.Until(browsertest.At("/login"))
}

// password types the password of someone with a second factor.
func password(tab *browsertest.Tab) {
	tab.Type("#field-email", "northbeam@example.com")
	tab.Type("#field-password", webtest.Password)
	tab.Click(`form[action="/login"] button[type="submit"]`)
	tab.Until(browsertest.At("/login/code") + ` && document.querySelector('form[data-passkey="get"]') !== null`)
}
