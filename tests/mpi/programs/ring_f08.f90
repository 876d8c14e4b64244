! SPDX-License-Identifier: BSD-2-Clause
! The same number by the module mpi_f08, as pieces of arrays with gaps, and what that module tells the C side by addresses:
! what is ignored, weightless graphs, reductions in place, a function of the program, errors that return.
program ring
    use mpi_f08
    implicit none
    type(MPI_Comm) :: circle
    type(MPI_Op) :: adds
    type(MPI_Request) :: requests(2)
    type(MPI_Status) :: status
    integer :: rank, processes, before, next, token, length, error, class, wrong, sources(2), targets(2), weights(2)
    integer :: said(2), heard(2)
    logical :: weighted
    integer, asynchronous :: out(8, 8), in(8, 8)
    character(len=MPI_MAX_LIBRARY_VERSION_STRING) :: version

    wrong = 0
    call MPI_Init()
    call MPI_Comm_rank(MPI_COMM_WORLD, rank)
    call MPI_Comm_size(MPI_COMM_WORLD, processes)
    before = mod(rank + processes - 1, processes)
    next = mod(rank + 1, processes)

    out = rank
    in = -1
    call MPI_Irecv(in(1:7:2, 2), 4, MPI_INTEGER, before, 1, MPI_COMM_WORLD, requests(1))
    call MPI_Isend(out(2:8:2, 3), 4, MPI_INTEGER, next, 1, MPI_COMM_WORLD, requests(2))
    call MPI_Wait(requests(1), status)
    call MPI_Wait(requests(2), MPI_STATUS_IGNORE)
    call check(all(in(1:7:2, 2) == before) .and. all(in(2:8:2, 2) == -1))
    call MPI_Get_count(status, MPI_INTEGER, length)
    call check(length == 4 .and. status%MPI_SOURCE == before .and. status%MPI_TAG == 1)

    sources = [before, next]
    targets = [next, before]
    call MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, sources, MPI_UNWEIGHTED, 2, targets, MPI_UNWEIGHTED, &
                                        MPI_INFO_NULL, .false., circle)
    call MPI_Dist_graph_neighbors_count(circle, length, error, weighted)
    call check(length == 2 .and. error == 2 .and. .not. weighted)
    call MPI_Dist_graph_neighbors(circle, 2, sources, MPI_UNWEIGHTED, 2, targets, MPI_UNWEIGHTED)
    said = [2 * rank, 2 * rank + 1]
    call MPI_Neighbor_alltoall(said, 1, MPI_INTEGER, heard, 1, MPI_INTEGER, circle)
    if (processes > 2) call check(heard(1) == 2 * before .and. heard(2) == 2 * next + 1)
    call MPI_Comm_free(circle)
    weights = [3, 4]
    call MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, sources, weights, 2, targets, weights, MPI_INFO_NULL, .false., circle)
    call MPI_Dist_graph_neighbors_count(circle, length, error, weighted)
    call check(weighted)
    call MPI_Comm_free(circle)

    call MPI_Op_create(add, .true., adds)
    token = 1
    call MPI_Allreduce(MPI_IN_PLACE, token, 1, MPI_INTEGER, adds, MPI_COMM_WORLD)
    call MPI_Op_free(adds)
    call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN)
    call MPI_Send(token, 1, MPI_INTEGER, processes, 1, MPI_COMM_WORLD, error)
    call MPI_Error_class(error, class)
    call check(class == MPI_ERR_RANK)

    call MPI_Allreduce(MPI_IN_PLACE, wrong, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
    if (rank == 0) then
        call MPI_Get_library_version(version, length)
        if (wrong == 0) print '(a,a,i0)', version(1:index(version, ' ') - 1), ' ring of ', token
        if (wrong /= 0) print '(i0,a)', wrong, ' wrong'
    end if
    call MPI_Finalize()

contains

    subroutine check(holds)
        logical, intent(in) :: holds
        if (.not. holds) wrong = wrong + 1
    end subroutine

    subroutine add(more, sum, count, type)
        use, intrinsic :: iso_c_binding, only: c_ptr, c_f_pointer
        type(c_ptr), value :: more, sum
        integer :: count
        type(MPI_Datatype) :: type
        integer, pointer :: terms(:), sums(:)
        call c_f_pointer(more, terms, [count])
        call c_f_pointer(sum, sums, [count])
        if (type == MPI_INTEGER) sums = sums + terms
    end subroutine
end program
