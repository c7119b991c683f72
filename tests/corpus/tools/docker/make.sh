#!/bin/sh
# Docker: containers with published ports in the default network and in two of their own.
# Debian packages: docker.io
set -eu
mkdir -p /tmp/image/bin
export DOCKER_RAMDISK=true
dockerd --storage-driver vfs --exec-opt native.cgroupdriver=cgroupfs > /var/log/dockerd.log 2>&1 &
for _ in $(seq 60); do docker info >/dev/null 2>&1 && break; sleep 1; done
cp /bin/sleep /tmp/image/bin/
for lib in $(ldd /bin/sleep | grep -o '/[^ ]*'); do mkdir -p /tmp/image$(dirname $lib); cp $lib /tmp/image$lib; done
tar -C /tmp/image -c . | docker import - image
docker network create --subnet 172.20.0.0/16 -o com.docker.network.bridge.name=br-front front
docker network create --subnet 172.21.0.0/16 --internal -o com.docker.network.bridge.name=br-back back
docker run -d --name web --network front --ip 172.20.0.10 -p 80:8080 -p 192.0.2.2:8443:443 image sleep 86400
docker run -d --name dns -p 53:53/udp -p 9000-9002:9000-9002 image sleep 86400
docker run -d --name db --network back --ip 172.21.0.10 image sleep 86400
