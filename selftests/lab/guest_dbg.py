import sys; sys.path.insert(0,'/run/tollway/src/selftests/lab')
from bench import *
from rtnl import *
from guest_base import *
b=Bench(); b.htb(80000,1000,options(limit=1000,target=5,gamma=0.02))
m=Model(b)
for i in range(12):
    m.send(); s=b.stats(); print(i, s.x.packets, s.x.backlog_sum, m.left, m.sum, s.qlen)
for i in range(6):
    m.step(); s=b.stats(); print(i, s.x.packets, s.x.backlog_sum, m.left, m.sum, s.qlen)
try:
    b.change(flags=32, selector=32); print("accepted")
except Refused as e: print(e)
b2=b
