#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>

#include "../chain.hpp"
#include "../closed_form.hpp"
#include "../collision.hpp"
#include "../distances.hpp"
#include "../numeric_ik.hpp"
#include "../relaxed_ik.hpp"
#include "../subproblems.hpp"
#include "arrays.hpp"

namespace py = pybind11;
using namespace iter_core;

namespace {

Pose pose_from(const double* m) {
  Pose pose;
  for (int r = 0; r < 3; ++r) {
    for (int c = 0; c < 3; ++c) pose.rotation(r, c) = m[4 * r + c];
    pose.position[r] = m[4 * r + 3];
  }
  return pose;
}

Pose pose_from(py::handle matrix, const char* name) { return pose_from(Input(matrix, {4, 4}, name).data()); }

void write_pose(const Pose& pose, double* m) {
  for (int r = 0; r < 3; ++r) {
    for (int c = 0; c < 3; ++c) m[4 * r + c] = pose.rotation(r, c);
    m[4 * r + 3] = pose.position[r];
    m[12 + r] = 0;
  }
  m[15] = 1;
}

Eigen::Vector3d vector_from(py::handle values, const char* name) {
  const Input input(values, {3}, name);
  return {input.data()[0], input.data()[1], input.data()[2]};
}

py::object output_vector(const Eigen::VectorXd& values) {
  const Output output = empty(py::int_(values.size()));
  std::copy(values.data(), values.data() + values.size(), output.doubles());
  return output.array;
}

void check_finite(const double* values, Py_ssize_t count, const char* name) {
  for (Py_ssize_t i = 0; i < count; ++i) {
    if (!std::isfinite(values[i])) throw py::value_error(std::string(name) + " holds a value that is not finite");
  }
}

void bind_chain(py::module& module) {
  py::class_<KinematicsSolver>(module, "Chain")
      .def(py::init([](py::list joints, py::object tip) {
             Chain chain;
             for (const py::handle item : joints) {
               const py::tuple row = py::reinterpret_borrow<py::tuple>(item);
               Joint joint;
               joint.origin = pose_from(row[0], "origin");
               joint.axis = vector_from(row[1], "axis");
               joint.prismatic = row[2].cast<bool>();
               joint.lower = row[3].cast<double>();
               joint.upper = row[4].cast<double>();
               joint.velocity = row[5].cast<double>();
               chain.joints.push_back(joint);
             }
             chain.tip = pose_from(tip, "tip");
             return KinematicsSolver(std::move(chain));
           }),
           py::arg("joints"), py::arg("tip"), "joints: rows of (origin, axis, prismatic, lower, upper, velocity).")
      .def("fk",
           [](const KinematicsSolver& self, py::handle q) {
             const Input input(q, {self.chain().size()}, "q");
             thread_local Kinematics at;
             self.solve(input.data(), at);
             const Output output = empty(py::make_tuple(4, 4));
             write_pose(at.tip, output.doubles());
             return output.array;
           })
      .def("fk_batch",
           [](const KinematicsSolver& self, py::handle q) {
             const Input input(q, {-1, self.chain().size()}, "q");
             const Output output = empty(py::make_tuple(input.length(0), 4, 4));
             Kinematics at;
             for (Py_ssize_t i = 0; i < input.length(0); ++i) {
               self.solve(input.data() + i * self.chain().size(), at);
               write_pose(at.tip, output.doubles() + 16 * i);
             }
             return output.array;
           })
      .def("frames",
           [](const KinematicsSolver& self, py::handle q) {
             const Input input(q, {self.chain().size()}, "q");
             Kinematics at;
             self.solve(input.data(), at);
             const Output output = empty(py::make_tuple(self.chain().size() + 1, 4, 4));
             for (int i = 0; i <= self.chain().size(); ++i) write_pose(at.frames[i], output.doubles() + 16 * i);
             return output.array;
           })
      .def("jacobian", [](const KinematicsSolver& self, py::handle q) {
        const Input input(q, {self.chain().size()}, "q");
        Kinematics at;
        self.solve(input.data(), at);
        const auto matrix = jacobian(self.chain(), at);
        const Output output = empty(py::make_tuple(6, self.chain().size()));
        for (int r = 0; r < 6; ++r) {
          for (int c = 0; c < self.chain().size(); ++c) output.doubles()[r * self.chain().size() + c] = matrix(r, c);
        }
        return output.array;
      });
}

void bind_closed_form(py::module& module) {
  py::class_<ClosedForm>(module, "ClosedForm")
      .def(py::init([](const KinematicsSolver& chain) { return ClosedForm(chain.chain()); }))
      .def("solve",
           [](const ClosedForm& self, py::handle target) {
             const Input input(target, {4, 4}, "target");
             ClosedFormSolutions solutions;
             self.solve(pose_from(input.data()), solutions);
             static const py::object* shape = new py::object(py::make_tuple(8, 6));
             static const py::object* rows = new py::object(py::make_tuple(8));
             const Output q = empty(*shape), exact = empty_bool(*rows);
             std::copy(&solutions.q[0][0], &solutions.q[0][0] + 48, q.doubles());
             std::copy(solutions.exact, solutions.exact + 8, static_cast<bool*>(exact.data));
             return py::make_tuple(q.array, exact.array);
           })
      .def("solve_batch", [](const ClosedForm& self, py::handle targets) {
        const Input input(targets, {-1, 4, 4}, "targets");
        const Py_ssize_t count = input.length(0);
        const Output q = empty(py::make_tuple(count, 8, 6)), exact = empty_bool(py::make_tuple(count, 8));
        self.solve_batch(input.data(), count, q.doubles(), static_cast<bool*>(exact.data));
        return py::make_tuple(q.array, exact.array);
      });
}

void bind_numeric_ik(py::module& module) {
  const auto joints = [](const NumericIk& self, py::handle values, const char* name) {
    const Py_ssize_t n = self.chain().size();
    const Input input(values, {n}, name);
    check_finite(input.data(), n, name);
    return Eigen::VectorXd(Eigen::Map<const Eigen::VectorXd>(input.data(), n));
  };
  const auto poses = [](const double* data, Py_ssize_t count) {
    check_finite(data, 16 * count, "target");
    std::vector<Pose> result;
    for (Py_ssize_t i = 0; i < count; ++i) result.push_back(pose_from(data + 16 * i));
    return result;
  };
  py::class_<NumericIk>(module, "NumericIk")
      .def(py::init([](const KinematicsSolver& chain) { return NumericIk(chain.chain()); }))
      .def("refine",
           [joints, poses](NumericIk& self, py::handle guess, py::handle target, int iterations) {
             const Input input(target, {4, 4}, "target");
             const NumericSolution found =
                 self.refine(joints(self, guess, "guess"), poses(input.data(), 1)[0], iterations);
             return py::make_tuple(output_vector(found.q), found.position_error, found.orientation_error);
           })
      .def("search",
           [joints, poses](NumericIk& self, py::handle target, py::handle near, int starts, int most_starts) {
             const Input input(target, {4, 4}, "target");
             const auto found =
                 self.search(poses(input.data(), 1)[0], joints(self, near, "near"), {starts, most_starts});
             py::list rows;
             for (const NumericSolution& solution : found) {
               rows.append(
                   py::make_tuple(output_vector(solution.q), solution.position_error, solution.orientation_error));
             }
             return rows;
           })
      .def("follow", [joints, poses](NumericIk& self, py::handle targets, py::handle start) {
        const Input input(targets, {-1, 4, 4}, "targets");
        std::vector<Eigen::VectorXd> way;
        const int count = self.follow(poses(input.data(), input.length(0)), joints(self, start, "start"), way);
        const int n = self.chain().size();
        const Output output = empty(py::make_tuple(count, n));
        for (int i = 0; i < count; ++i) std::copy(way[i].data(), way[i].data() + n, output.doubles() + n * i);
        return output.array;
      });
}

void bind_subproblems(py::module& module) {
  const auto tuple = [](const Angles& a) { return py::make_tuple(a.angle[0], a.angle[1], a.residual); };
  module.def("circle_to_point", [tuple](py::handle point, py::handle axis, py::handle target) {
    return tuple(
        circle_to_point(vector_from(point, "point"), vector_from(axis, "axis"), vector_from(target, "target")));
  });
  module.def("circle_to_sphere", [tuple](py::handle point, py::handle axis, py::handle centre, double radius) {
    return tuple(circle_to_sphere(vector_from(point, "point"), vector_from(axis, "axis"), vector_from(centre, "centre"),
                                  radius));
  });
  module.def("circle_to_plane", [tuple](py::handle point, py::handle axis, py::handle normal, double offset) {
    return tuple(
        circle_to_plane(vector_from(point, "point"), vector_from(axis, "axis"), vector_from(normal, "normal"), offset));
  });
}

Capsule capsule_from(py::handle start, py::handle end, double radius) {
  return {vector_from(start, "start"), vector_from(end, "end"), radius};
}

Obstacle box_obstacle(py::handle pose, py::handle size) {
  Obstacle obstacle;
  obstacle.is_box = true;
  obstacle.box = {pose_from(pose, "pose"), 0.5 * vector_from(size, "size")};
  return obstacle;
}

Obstacle capsule_obstacle(py::handle start, py::handle end, double radius) {
  Obstacle obstacle;
  obstacle.capsule = capsule_from(start, end, radius);
  return obstacle;
}

py::tuple distance_tuple(const Distance& d) {
  return py::make_tuple(d.distance, output_vector(d.first), output_vector(d.second), output_vector(d.normal));
}

void bind_collision(py::module& module) {
  module.def("capsule_to_capsule", [](py::handle start, py::handle end, double radius, py::handle other_start,
                                      py::handle other_end, double other_radius) {
    return distance_tuple(
        capsule_to_capsule(capsule_from(start, end, radius), capsule_from(other_start, other_end, other_radius)));
  });
  module.def("capsule_to_box", [](py::handle start, py::handle end, double radius, py::handle pose, py::handle size) {
    return distance_tuple(capsule_to_box(capsule_from(start, end, radius), box_obstacle(pose, size).box));
  });
  py::class_<World, std::shared_ptr<World>>(module, "World")
      .def(py::init<>())
      .def("add_box", [](World& w, py::handle pose, py::handle size) { return w.add(box_obstacle(pose, size)); })
      .def("add_capsule", [](World& w, py::handle start, py::handle end,
                             double radius) { return w.add(capsule_obstacle(start, end, radius)); })
      .def("replace_box",
           [](World& w, int id, py::handle pose, py::handle size) { return w.replace(id, box_obstacle(pose, size)); })
      .def("replace_capsule", [](World& w, int id, py::handle start, py::handle end,
                                 double radius) { return w.replace(id, capsule_obstacle(start, end, radius)); })
      .def("remove", &World::remove)
      .def("__len__", [](const World& w) { return w.obstacles().size(); });
  py::class_<CollisionModel, std::shared_ptr<CollisionModel>>(module, "CollisionModel")
      .def(py::init([](py::list bodies, std::vector<std::pair<int, int>> pairs) {
             std::vector<Body> list;
             for (const py::handle item : bodies) {
               const py::tuple row = py::reinterpret_borrow<py::tuple>(item);
               list.push_back({row[0].cast<int>(), capsule_from(row[1], row[2], row[3].cast<double>())});
             }
             return std::make_shared<CollisionModel>(std::move(list), std::move(pairs));
           }),
           py::arg("bodies"), py::arg("pairs"), "bodies: rows of (frame, start, end, radius).")
      .def("pair_distances",
           [](const CollisionModel& self, const KinematicsSolver& chain, py::handle q) {
             const Input input(q, {-1, chain.chain().size()}, "q");
             const Py_ssize_t columns = static_cast<Py_ssize_t>(self.pairs().size());
             const Output output = empty(py::make_tuple(input.length(0), columns));
             Kinematics at;
             std::vector<Capsule> placed;
             double* next = output.doubles();
             for (Py_ssize_t i = 0; i < input.length(0); ++i) {
               chain.solve(input.data() + i * chain.chain().size(), at);
               self.place(at, placed);
               for (const auto& [a, b] : self.pairs()) *next++ = capsule_to_capsule(placed[a], placed[b]).distance;
             }
             return output.array;
           })
      .def("nearest",
           [](const CollisionModel& self, const KinematicsSolver& chain, py::handle q, const World* world) {
             const Input input(q, {chain.chain().size()}, "q");
             Kinematics at;
             chain.solve(input.data(), at);
             const BodyDistance found = self.nearest(at, world);
             Eigen::VectorXd gradient = Eigen::VectorXd::Zero(chain.chain().size());
             if (found.body >= 0) self.gradient(chain.chain(), at, found, gradient.data());
             return py::make_tuple(found.distance.distance, found.body, found.other_body, found.obstacle,
                                   output_vector(found.distance.first), output_vector(found.distance.second),
                                   output_vector(gradient));
           })
      .def("nearest_batch",
           [](const CollisionModel& self, const KinematicsSolver& chain, py::handle q, const World* world) {
             const Input input(q, {-1, chain.chain().size()}, "q");
             const Output output = empty(py::int_(input.length(0)));
             Kinematics at;
             for (Py_ssize_t i = 0; i < input.length(0); ++i) {
               chain.solve(input.data() + i * chain.chain().size(), at);
               output.doubles()[i] = self.nearest(at, world).distance.distance;
             }
             return output.array;
           });
}

void bind_objectives(py::module& module) {
  py::class_<Objective, std::shared_ptr<Objective>>(module, "Objective")
      .def_readonly("name", &Objective::name)
      .def_readwrite("weight", &Objective::weight)
      .def_property_readonly("groove",
                             [](const Objective& o) { return py::make_tuple(o.groove.width, o.groove.parabola); })
      .def("__repr__",
           [](const Objective& o) { return "Objective(" + o.name + ", " + std::to_string(o.weight) + ")"; });
  using Shared = std::shared_ptr<Objective>;
  module.def("position_objective", [](const std::string& name, double weight, double width, double parabola) {
    return Shared(new PositionObjective(name, weight, Groove{width, parabola}));
  });
  module.def("orientation_objective", [](const std::string& name, double weight, double width, double parabola) {
    return Shared(new OrientationObjective(name, weight, Groove{width, parabola}));
  });
  module.def("smoothness_objective",
             [](const std::string& name, double weight, double width, double parabola, int order) {
               return Shared(new SmoothnessObjective(name, weight, Groove{width, parabola}, order));
             });
  module.def("joint_limit_objective",
             [](const std::string& name, double weight, double width, double parabola, double margin) {
               return Shared(new JointLimitObjective(name, weight, Groove{width, parabola}, margin));
             });
  module.def("attraction_objective", [](const std::string& name, double weight, double width, double parabola,
                                        int frame, py::handle offset, py::handle target) {
    return Shared(new AttractionObjective(name, weight, Groove{width, parabola}, frame, vector_from(offset, "offset"),
                                          vector_from(target, "target")));
  });
  module.def("self_collision_objective", [](const std::string& name, double weight, double width, double parabola,
                                            double margin, std::shared_ptr<CollisionModel> bodies) {
    return Shared(new SelfCollisionObjective(name, weight, Groove{width, parabola}, margin, bodies));
  });
  module.def("obstacle_objective",
             [](const std::string& name, double weight, double width, double parabola, double margin,
                std::shared_ptr<CollisionModel> bodies, std::shared_ptr<World> world) {
               return Shared(new ObstacleObjective(name, weight, Groove{width, parabola}, margin, bodies, world));
             });
}

void bind_relaxed_ik(py::module& module) {
  py::class_<RelaxedIkReport>(module, "RelaxedIkReport")
      .def_readonly("position_error", &RelaxedIkReport::position_error)
      .def_readonly("orientation_error", &RelaxedIkReport::orientation_error)
      .def_readonly("objective", &RelaxedIkReport::objective)
      .def_readonly("evaluations", &RelaxedIkReport::evaluations)
      .def_readonly("reconfiguring", &RelaxedIkReport::reconfiguring);
  py::class_<RelaxedIk>(module, "RelaxedIk")
      .def(py::init([](const KinematicsSolver& chain, std::vector<std::shared_ptr<Objective>> objectives, double period,
                       int max_iterations, bool reconfigure) {
        return std::make_unique<RelaxedIk>(chain.chain(), std::move(objectives),
                                           RelaxedIkOptions{period, max_iterations, reconfigure});
      }))
      .def("reset",
           [](RelaxedIk& self, py::handle q) {
             const Input input(q, {self.chain().size()}, "q");
             check_finite(input.data(), self.chain().size(), "q");
             self.reset(Eigen::Map<const Eigen::VectorXd>(input.data(), self.chain().size()));
           })
      .def("solve",
           [](RelaxedIk& self, py::handle target) {
             const Input input(target, {4, 4}, "target");
             check_finite(input.data(), 16, "target");
             return output_vector(self.solve(pose_from(input.data())));
           })
      .def("solve_path",
           [](RelaxedIk& self, py::handle targets) {
             const Input input(targets, {-1, 4, 4}, "targets");
             const Py_ssize_t count = input.length(0), n = self.chain().size();
             check_finite(input.data(), 16 * count, "targets");
             const Output output = empty(py::make_tuple(count, n));
             for (Py_ssize_t i = 0; i < count; ++i) {
               const Eigen::VectorXd& q = self.solve(pose_from(input.data() + 16 * i));
               std::copy(q.data(), q.data() + n, output.doubles() + n * i);
             }
             return output.array;
           })
      .def_property_readonly("report", [](const RelaxedIk& self) { return self.report(); })
      .def_property(
          "period", [](RelaxedIk& self) { return self.options().period; },
          [](RelaxedIk& self, double period) { self.options().period = period; })
      .def_property(
          "reconfigure", [](RelaxedIk& self) { return self.options().reconfigure; },
          [](RelaxedIk& self, bool on) { self.options().reconfigure = on; })
      .def_property(
          "max_iterations", [](RelaxedIk& self) { return self.options().max_iterations; },
          [](RelaxedIk& self, int count) { self.options().max_iterations = count; });
}

}  // namespace

PYBIND11_MODULE(iter_core, module) {
  module.doc() = "Chains, inverse kinematics and distances for robot arms.";
  bind_chain(module);
  bind_closed_form(module);
  bind_numeric_ik(module);
  bind_collision(module);
  bind_subproblems(module);
  bind_objectives(module);
  bind_relaxed_ik(module);
}
