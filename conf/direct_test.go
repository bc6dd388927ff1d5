package conf

import (
	"net"
	"strings"
	"testing"
)

func TestDirectAddresses(t *testing.T) {
	for _, c := range []struct {
		s         Settings
		route     int
		listen    string
		chosen    bool
		advertise string // if it listens on port 7
	}{
		{Settings{ClusterListen: "10.0.0.1:6222"}, 6222, "10.0.0.1:7222", false, "10.0.0.1:7"},
		{Settings{ClusterListen: "10.0.0.1:0"}, 40000, "10.0.0.1:0", false, "10.0.0.1:7"},
		{Settings{ClusterListen: "10.0.0.1:65000"}, 65000, "10.0.0.1:0", false, "10.0.0.1:7"},
		{Settings{ClusterListen: "[::1]:6222"}, 6222, "[::1]:7222", false, "[::1]:7"},
		{Settings{ClusterListen: "0.0.0.0:6222", ClusterAdvertise: "n1.example:1"}, 6222, "0.0.0.0:7222", false, "n1.example:7"},
		{Settings{ClusterListen: "10.0.0.1:6222", DirectListen: "10.9.0.1:99"}, 6222, "10.9.0.1:99", true, "10.9.0.1:7"},
		{Settings{ClusterListen: "10.0.0.1:6222", DirectListen: ":99", DirectAdvertise: "n2.example:98"}, 6222, ":99", true, "n2.example:98"},
	} {
		if listen, chosen := c.s.DirectListenAddress(c.route); listen != c.listen || chosen != c.chosen {
			t.Errorf("%+v: listens at %s, %t", c.s, listen, chosen)
		}
		if got := c.s.DirectAddress("7"); got != c.advertise {
			t.Errorf("%+v: is reached at %s", c.s, got)
		}
	}
	host, port, err := net.SplitHostPort((&Settings{ClusterListen: ":6222"}).DirectAddress("7"))
	if ip := net.ParseIP(host); err != nil || ip == nil || ip.IsUnspecified() || port != "7" {
		t.Errorf("got %s, %s, %v", host, port, err)
	}
}

func TestDirectSettingsThatAreRefused(t *testing.T) {
	for what, s := range map[string]Settings{
		"is not an address":         {DirectListen: "six"},
		"is the address of listen":  {DirectListen: "127.0.0.1:4222"},
		"the address of cluster_li": {DirectListen: "127.0.0.1:6222"},
		"names no host":             {DirectAdvertise: ":7222"},
		"has no port":               {DirectAdvertise: "a:0"},
	} {
		settings := Default()
		settings.Data, settings.ClusterListen = "/d", "127.0.0.1:6222"
		settings.DirectListen, settings.DirectAdvertise = s.DirectListen, s.DirectAdvertise
		if err := settings.Validate(); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
	alone := Default()
	if alone.DirectListen = Off; alone.Validate() != nil {
		t.Error("off is refused for a daemon that is alone")
	}
	if alone.DirectListen = "127.0.0.1:7222"; alone.Validate() == nil {
		t.Error("an address for other daemons, and there can be none")
	}
}
