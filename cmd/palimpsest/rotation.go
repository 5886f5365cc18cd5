package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"

	"palimpsest/cmd/palimpsest/settings"
	"palimpsest/tenants/datakeys"
	"palimpsest/tenants/rotation"
	"palimpsest/tenants/tenantsdb"
	"palimpsest/tenants/vault"
)

// masterRotation seals everything under an older master key with the newest one, and reports when it is
// done.
type masterRotation struct {
	masters int // number of configured master keys
	sealed  *prometheus.CounterVec
	done    prometheus.Gauge
}

// newRotation registers its metrics with registry.
func newRotation(registry prometheus.Registerer, masters int) *masterRotation {
	r := &masterRotation{
		masters: masters,
		sealed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "palimpsest", Name: "vault_resealed_total", Help: "Keys that were sealed again with the newest master key, by kind.",
		}, []string{"kind"}),
		done: prometheus.NewGauge(prometheus.GaugeOpts{
			Namespace: "palimpsest", Name: "vault_rotation_done", Help: "1 once everything is sealed with the first master key; 0 before, and where something does not open.",
		}),
	}
	registry.MustRegister(r.sealed, r.done)
	return r
}

// run seals everything that is due. The gauge and the log report the end.
func (r *masterRotation) run(ctx context.Context, db *tenantsdb.DB, keys *datakeys.Manager, safe *vault.Vault, log *slog.Logger) error {
	result, err := reseal(ctx, db, keys, safe)
	r.sealed.WithLabelValues("data_key").Add(float64(result.dataKeys))
	r.sealed.WithLabelValues("provider_key").Add(float64(result.providerKeys))
	r.sealed.WithLabelValues("second_factor").Add(float64(result.factors))
	r.sealed.WithLabelValues("sign_on").Add(float64(result.signOns))
	r.sealed.WithLabelValues("alert_channel").Add(float64(result.alertChannels))
	r.sealed.WithLabelValues("mail").Add(float64(result.mails))
	if err != nil {
		r.done.Set(0)
		return err
	}
	r.done.Set(1)
	if result != (resealed{}) {
		log.InfoContext(ctx, "everything is sealed with the first master key", "provider_keys", result.providerKeys, "data_keys", result.dataKeys,
			"second_factors", result.factors, "sign_ons", result.signOns, "alert_channels", result.alertChannels, "mails", result.mails,
			"master_keys", r.masters)
	}
	return nil
}

// resealed counts the entries sealed again.
type resealed struct {
	providerKeys, dataKeys, factors, signOns, alertChannels, mails int

	proof bool // of the master key
}

// reseal seals everything under an older master key again.
func reseal(ctx context.Context, db *tenantsdb.DB, keys *datakeys.Manager, safe *vault.Vault) (resealed, error) {
	dataKeys, dataErr := keys.RewrapAll(ctx)
	providerKeys, providerErr := rotation.ProviderKeys(ctx, db, safe)
	factors, factorErr := rotation.SecondFactors(ctx, db, safe)
	signOns, signOnErr := rotation.SignOns(ctx, db, safe)
	alertChannels, alertErr := rotation.AlertChannels(ctx, db, safe)
	mails, mailErr := db.Mail.ResealMails(ctx)
	proof, proofErr := rotation.Proof(ctx, db, safe)
	result := resealed{providerKeys: providerKeys, dataKeys: dataKeys, factors: factors, signOns: signOns, alertChannels: alertChannels, mails: mails, proof: proof}
	return result, errors.Join(dataErr, providerErr, factorErr, signOnErr, alertErr, mailErr, proofErr)
}

// vaultCommand is for operators who change the master key.
func vaultCommand(load func() (settings.Config, error)) *cobra.Command {
	again := &cobra.Command{
		Use: "reseal", Short: "Seal everything with the first master key of PALIMPSEST_SECRET_KEY, now, and say when that is done", Args: cobra.NoArgs,
		RunE: withTools(load, func(ctx context.Context, command *cobra.Command, tools tools) error {
			result, err := reseal(ctx, tools.db, datakeys.New(tools.db.DataKeys, tools.vault), tools.vault)
			fmt.Fprintf(command.OutOrStdout(), "sealed again: %d provider keys, %d data keys, %d second factors, %d sign-ons, %d alert channels\n",
				result.providerKeys, result.dataKeys, result.factors, result.signOns, result.alertChannels)
			if err != nil {
				return fmt.Errorf("the other master keys are still needed: %w", err)
			}
			fmt.Fprintln(command.OutOrStdout(), "provider keys, data keys, second factors, sign-ons and alert channels need the first master key only")
			return nil
		}),
	}
	command := &cobra.Command{Use: "vault", Short: "Look after what is sealed with the master key"}
	command.AddCommand(again)
	return command
}
