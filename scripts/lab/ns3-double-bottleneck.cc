// SPDX-License-Identifier: GPL-2.0
// The double bottleneck of CP05 4.3.1 in ns-3, for its running time alone.
// usage: ns3-double-bottleneck SECONDS

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"

#include <cstdlib>
#include <iostream>

using namespace ns3;

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? std::atof(argv[1]) : 60;

	Config::SetDefault("ns3::TcpL4Protocol::SocketType",
			   StringValue("ns3::TcpNewReno"));
	Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(934));
	Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(1 << 20));
	Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(1 << 20));

	NodeContainer routers, sources, sinks;
	routers.Create(3);
	sources.Create(3);
	sinks.Create(3);
	InternetStackHelper stack;
	stack.InstallAll();

	Ipv4AddressHelper address("10.0.0.0", "255.255.255.0");
	auto join = [&](Ptr<Node> a, Ptr<Node> b, const char *rate,
			const char *delay, const char *queue) {
		PointToPointHelper link;
		link.SetDeviceAttribute("DataRate", StringValue(rate));
		link.SetChannelAttribute("Delay", StringValue(delay));
		link.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue(queue));
		auto interfaces = address.Assign(link.Install(a, b));
		address.NewNetwork();
		return interfaces;
	};

	join(routers.Get(0), routers.Get(1), "96Mbps", "1ms", "300p");
	join(routers.Get(1), routers.Get(2), "96Mbps", "15ms", "300p");
	const int first[] = {0, 1, 0}, last[] = {1, 2, 2};
	for (int path = 0; path < 3; path++) {
		join(sources.Get(path), routers.Get(first[path]), "1Gbps", "1ms",
		     "10000p");
		auto end = join(sinks.Get(path), routers.Get(last[path]), "1Gbps",
				"1ms", "10000p");
		for (int flow = 0; flow < 12; flow++) {
			uint16_t port = 5001 + flow;
			BulkSendHelper sender("ns3::TcpSocketFactory",
					      InetSocketAddress(end.GetAddress(0),
								port));
			sender.SetAttribute("SendSize", UintegerValue(65536));
			auto app = sender.Install(sources.Get(path));
			app.Start(Seconds(0.003 * (12 * path + flow)));
			PacketSinkHelper sink("ns3::TcpSocketFactory",
					      InetSocketAddress(Ipv4Address::GetAny(),
								port));
			sink.Install(sinks.Get(path));
		}
	}
	Ipv4GlobalRoutingHelper::PopulateRoutingTables();
	Simulator::Stop(Seconds(seconds));
	Simulator::Run();
	std::cout << Simulator::GetEventCount() << " events\n";
	Simulator::Destroy();
	return 0;
}
