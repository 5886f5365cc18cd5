package main

import (
	"bytes"
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/cmd/palimpsest/settings"
	"palimpsest/migrations/dbtest"
	"palimpsest/tenants"
	"palimpsest/tenants/vault"
)

// S15: the command seals the secrets of second factors and of single sign-on again, too,
// and says how many.
func TestResealSealsWhatPeopleLogInWith(t *testing.T) {
	t.Parallel()
	database := dbtest.New(t)
	older, newer := bytes.Repeat([]byte("o"), 32), bytes.Repeat([]byte("n"), 32)
	before, err := vault.New([][]byte{older})
	if err != nil {
		t.Fatal(err)
	}
	user, workspace, err := database.DB.Accounts.SignUp(t.Context(), "ada@example.com", "", "Northbeam")
	if err != nil {
		t.Fatal(err)
	}
	aboutFactor, aboutSignOn := tenants.AboutSecondFactor(user.ID), tenants.AboutSignOn(workspace.ID, "https://login.example", "client")
	factor, err := before.SealAbout(aboutFactor, "of the app")
	if err != nil {
		t.Fatal(err)
	}
	secret, err := before.SealAbout(aboutSignOn, "of the client")
	if err != nil {
		t.Fatal(err)
	}
	if err := database.DB.Factors.StartSecondFactor(t.Context(), user.ID, factor, time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := database.DB.SignOn.SaveSignOn(tenants.WithActor(t.Context(), tenants.Actor{User: user.ID}), workspace.ID, tenants.SignOn{Issuer: "https://login.example", ClientID: "client", Sealed: secret, Role: tenants.Viewer}); err != nil {
		t.Fatal(err)
	}

	channel := tenants.AlertChannel{ID: uuid.New(), Kind: tenants.AlertWebhook, Name: "on call", Place: "example.com", Rules: tenants.AlertRules(), CreatedAt: time.Now()}
	if channel.Sealed, err = before.SealAbout(tenants.AboutAlertChannel(workspace.ID, channel.ID), "of the channel"); err != nil {
		t.Fatal(err)
	}
	if err := database.DB.Alerts.AddAlertChannel(t.Context(), workspace.ID, channel); err != nil {
		t.Fatal(err)
	}

	for _, want := range []string{"1 second factors, 1 sign-ons, 1 alert channels", "0 second factors, 0 sign-ons, 0 alert channels"} {
		var out bytes.Buffer
		command := vaultCommand(func() (settings.Config, error) {
			config := settings.DefaultConfig()
			config.Storage.DatabaseURL, config.Storage.DataDir = database.OwnerURL, t.TempDir()
			config.Storage.SecretKey = base64.StdEncoding.EncodeToString(newer) + "," + base64.StdEncoding.EncodeToString(older)
			return config, nil
		})
		command.SetArgs([]string{"reseal"})
		command.SetOut(&out)
		if err := command.ExecuteContext(t.Context()); err != nil || !strings.Contains(out.String(), want) {
			t.Errorf("%q lacks %q: %v", out.String(), want, err)
		}
	}
	after, err := vault.New([][]byte{newer})
	if err != nil {
		t.Fatal(err)
	}
	kept, err := database.DB.Factors.SecondFactor(t.Context(), user.ID)
	if err != nil {
		t.Fatal(err)
	}
	if opened, newest, err := after.OpenAbout(aboutFactor, kept.Sealed); err != nil || opened != "of the app" || !newest {
		t.Errorf("the app's secret: %q, %v, %v", opened, newest, err)
	}
	channels, err := database.DB.Alerts.AlertChannels(t.Context(), workspace.ID)
	if err != nil || len(channels) != 1 {
		t.Fatalf("%d channels, %v", len(channels), err)
	}
	if opened, newest, err := after.OpenAbout(tenants.AboutAlertChannel(workspace.ID, channel.ID), channels[0].Sealed); err != nil || opened != "of the channel" || !newest {
		t.Errorf("the channel's address: %q, %v, %v", opened, newest, err)
	}
	signOn, err := database.DB.SignOn.SignOn(t.Context(), workspace.ID)
	if err != nil {
		t.Fatal(err)
	}
	if opened, newest, err := after.OpenAbout(aboutSignOn, signOn.Sealed); err != nil || opened != "of the client" || !newest {
		t.Errorf("the client's secret: %q, %v, %v", opened, newest, err)
	}
}
