package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// healthcheckTimeout is shorter than the usual patience of those who ask (Docker image: 3 s).
const healthcheckTimeout = 2 * time.Second

func healthcheckCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "healthcheck",
		Short: "Ask the Curfew on CURFEW_OPS_ADDR whether it is ready: exit code 0 or 1",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := loadConfig()
			if err != nil {
				// Not a usageError: to Docker any code but 0 and 1 is reserved.
				return fmt.Errorf("healthcheck: %s", err)
			}
			if err := askReady(cmd.Context(), string(c.OpsAddr)); err != nil {
				return fmt.Errorf("healthcheck: %w", err)
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), "ready")
			return err
		},
	}
}

// askReady returns nil if the process whose ops endpoints listen on addr is ready.
func askReady(ctx context.Context, addr string) error {
	ctx, cancel := context.WithTimeout(ctx, healthcheckTimeout)
	defer cancel()
	url := "http://" + reachable(addr) + "/readyz"
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}} // and no proxy
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("no answer: %w", err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 4096))
	if err != nil {
		return fmt.Errorf("read the answer of %s: %w", url, err)
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("not ready: %s answers %s %s", url, resp.Status, strings.TrimSpace(string(body)))
	}
	return nil
}

// reachable is where a client on this machine finds a listener: an address that means every interface
// becomes loopback.
func reachable(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	switch ip := net.ParseIP(host); {
	case host == "" || ip.Equal(net.IPv4zero):
		host = "127.0.0.1"
	case ip.Equal(net.IPv6unspecified):
		host = "::1"
	}
	return net.JoinHostPort(host, port)
}
