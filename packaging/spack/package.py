# SPDX-License-Identifier: BSD-2-Clause
"""Spack's recipe: put this folder into a repository of recipes as packages/viaduct, and `spack dev-build viaduct@main` in a checkout."""
from spack.package import CMakePackage, conflicts, depends_on, generator, join_path, license, provides, variant, version


class Viaduct(CMakePackage):
    """Programs for the Virtual Interface Architecture (VIA, 1997) on today's machines, and MPI over it."""

    homepage = "https://viaduct.invalid/"

    license("BSD-2-Clause")

    version("main", branch="main")
    version("0.1.0")

    variant("acenic", default=False, description="the NIC over Ethernet ports of DPDK")
    variant("verbs", default=False, description="the NIC on RDMA devices")

    provides("mpi@:4.0")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("ninja", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("cli11", type="build")
    depends_on("nlohmann-json", type="build")
    depends_on("tomlplusplus", type="build")
    depends_on("fmt")
    depends_on("spdlog")
    depends_on("libnl")
    depends_on("libsodium")
    depends_on("pmix")
    depends_on("hydra", type="run")
    depends_on("dpdk", when="+acenic")
    depends_on("rdma-core", when="+verbs")
    conflicts("platform=darwin", msg="Viaduct is for Linux")
    conflicts("platform=windows", msg="Viaduct is for Linux")

    generator("ninja")

    def cmake_args(self):
        return [self.define("VIADUCT_TESTS", False)]

    def setup_run_environment(self, env):
        env.prepend_path("PATH", self.prefix.lib.cmpi.bin)

    def setup_dependent_package(self, module, dependent_spec):
        tools = self.prefix.lib.cmpi.bin
        self.spec.mpicc = join_path(tools, "mpicc")
        self.spec.mpicxx = join_path(tools, "mpicxx")
        self.spec.mpifc = join_path(tools, "mpifort")
        self.spec.mpif77 = join_path(tools, "mpif77")
