from guest_tcp import *
path = Path(aqm=options(limit=100, target=5, gamma=0.002))
path.r2.batch("tc", [
        "qdisc add dev left clsact",
        "filter add dev left ingress protocol ip prio 1 u32 match ip dst "
        "10.0.2.2/32 action drop"])
with path.r2:
        start([sys.executable, tcp_bench.__file__, "left", "right"])
time.sleep(1)
raw=path.sniffer()
with path.s:
    c=socket.socket(); c.setblocking(False)
    try: c.connect(("10.0.2.2",5000))
    except BlockingIOError: pass
time.sleep(3)
print(sniffed(raw))
print(path.r2.run("tc -s filter show dev left ingress"))
print(path.r2.run("ip -s link show right"))
print(path.d.run("nstat -az"))
print(run("ps aux"))
